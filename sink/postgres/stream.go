package postgres

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/patch"
)

// StreamSpec describes the list-watch of a stream. Group, Resource and Scope are its identity.
type StreamSpec struct {
	Group      string
	Resource   string
	Scope      string // namespace, "" for all
	Version    string // served API version that the list-watch requests
	Kind       string
	Namespaced bool
	Filter     string // "" for none; see Stream.Filter

	// Redact applies the present rules of what may be stored to a text of the record (I9). Nil keeps the text
	// unchanged.
	Redact func(patch.Doc) (patch.Doc, error)

	// Schema identifies the schema that decides the content of a new stream's objects at a resource version; see
	// Stream.Schema.
	Schema string

	// StartRV is the resource version from which a new stream is complete without a list, because none of its objects
	// is older. It is the resource version of the CRD whose instances the stream follows. It is ignored if the stream
	// was recorded before.
	StartRV string
}

type streamKey struct{ group, resource, scope string }

func (s *StreamSpec) key() streamKey { return streamKey{s.Group, s.Resource, s.Scope} }

// A Stream is one list-watch in the record.
type Stream struct {
	id    int32
	known Known

	// These fields belong to the encoder.
	work       streamState
	empty      bool
	registered bool // by this writer
	ended      endedLives
	dirty      bool

	mu        sync.RWMutex // protects what follows
	spec      StreamSpec
	published streamState
	excluded  map[types.UID]struct{}
}

// ID returns the number by which items name the stream.
func (st *Stream) ID() int32 { return st.id }

func (st *Stream) identity() streamKey {
	st.mu.RLock()
	defer st.mu.RUnlock()
	return st.spec.key()
}

// Known returns the view of its living objects.
func (st *Stream) Known() *Known { return &st.known }

// Position returns the resource version from which a watch can continue, or "" if the stream has to be listed.
func (st *Stream) Position() string {
	if w := st.state(); w.synced {
		return w.at.Complete
	}
	return ""
}

// Newest returns the newest resource version on record, or "" if there is none. It is later than Position while more
// deletes may share it.
func (st *Stream) Newest() string { return st.state().at.Newest }

// Unfinished returns the cause of a list, after the first, that was not recorded to its end. It returns "" if there is
// none.
func (st *Stream) Unfinished() (cause delta.Cause) {
	if w := st.state(); !w.synced && w.at.Complete != "" && w.gap != nil {
		return w.gap.Cause
	}
	return ""
}

// OpenGap returns the cause of the open gap, or "" if there is none.
func (st *Stream) OpenGap() (cause delta.Cause) {
	if w := st.state(); w.gap != nil {
		return w.gap.Cause
	}
	return ""
}

// Empty reports whether the stream, when it was opened, was complete and had never had an object. Such a stream began
// with a StartRV and has recorded nothing yet.
func (st *Stream) Empty() bool { return st.empty }

// New reports whether this writer has registered the stream: no earlier one has followed it.
func (st *Stream) New() bool { return st.registered }

// Filter returns the filter of the last list that was recorded. Before the first list, it is the filter of the
// specification with which the stream was registered. If the stream now has another filter, it must be listed. The new
// filter is in force from the Replaced of that list.
func (st *Stream) Filter() string { return st.state().filter }

// Schema returns the schema under which all living objects were last compared with the server's, or "" if it is
// unknown. See Compared.
func (st *Stream) Schema() string { return st.state().schema }

// Excluded reports whether a label filter excludes the object with this UID, as decided when the object was first seen.
func (st *Stream) Excluded(uid types.UID) bool {
	st.mu.RLock()
	defer st.mu.RUnlock()
	_, excluded := st.excluded[uid]
	return excluded
}

func (st *Stream) state() streamState {
	st.mu.RLock()
	defer st.mu.RUnlock()
	return st.published
}

// publish copies the encoder's state to where readers see it.
func (st *Stream) publish() streamState {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.published = st.work
	if g := st.work.gap; g != nil {
		shown := *g
		st.published.gap = &shown
	}
	return st.work
}

// setExcluded reports whether it changed anything.
func (st *Stream) setExcluded(uid types.UID, excluded bool) bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	if _, was := st.excluded[uid]; was == excluded {
		return false
	}
	if !excluded {
		delete(st.excluded, uid)
		return true
	}
	if st.excluded == nil {
		st.excluded = make(map[types.UID]struct{})
	}
	st.excluded[uid] = struct{}{}
	return true
}

func textOf(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func nullable(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func microsOf(t *time.Time) *int64 {
	if t == nil {
		return nil
	}
	n := t.UnixMicro()
	return &n
}
