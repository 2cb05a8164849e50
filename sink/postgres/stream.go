package postgres

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/patch"
)

// StreamSpec says which list-watch a stream is. Group, Resource and Scope are its identity.
type StreamSpec struct {
	Group      string
	Resource   string
	Scope      string // namespace, "" for all
	Version    string // served API version that is asked for
	Kind       string
	Namespaced bool
	Filter     string // "" for none; see Stream.Filter

	// Redact brings a text of the record under the present rules of what may be stored (I9). Nil: it stays as it is.
	Redact func(patch.Doc) (patch.Doc, error)

	// Schema is what decides the content of the objects of a new stream at a resource version; see Stream.Schema.
	Schema string

	// StartRV is the resource version from which a new stream is complete without a list, because nothing of it is older. It
	// is that of the CRD whose instances the stream follows. It means nothing for a stream that was recorded before.
	StartRV string
}

type streamKey struct{ group, resource, scope string }

func (s *StreamSpec) key() streamKey { return streamKey{s.Group, s.Resource, s.Scope} }

// A Stream is one list-watch in the record.
type Stream struct {
	id    int32
	known Known

	// What belongs to the encoder.
	work   streamState
	empty  bool
	buried buried
	dirty  bool

	mu        sync.RWMutex // protects what follows
	spec      StreamSpec
	published streamState
	excluded  map[types.UID]struct{}
}

// ID is the number by which items name the stream.
func (st *Stream) ID() int32 { return st.id }

func (st *Stream) identity() streamKey {
	st.mu.RLock()
	defer st.mu.RUnlock()
	return st.spec.key()
}

// Known is the view of its living objects.
func (st *Stream) Known() *Known { return &st.known }

// Position is the resource version at which a watch can go on, "" if the stream has to be listed.
func (st *Stream) Position() string {
	if w := st.state(); w.synced {
		return w.at.Complete
	}
	return ""
}

// Newest is the newest resource version on record, "" if there is none. It is later than Position while more deletes may share it.
func (st *Stream) Newest() string { return st.state().at.Newest }

// Unfinished is why there was a list after the first that was not recorded to its end, "" if there is none.
func (st *Stream) Unfinished() (cause delta.Cause) {
	if w := st.state(); !w.synced && w.at.Complete != "" && w.gap != nil {
		return w.gap.Cause
	}
	return ""
}

// OpenGap is the cause of the gap that is open, "" if there is none.
func (st *Stream) OpenGap() (cause delta.Cause) {
	if w := st.state(); w.gap != nil {
		return w.gap.Cause
	}
	return ""
}

// Empty reports whether, when it was opened, the stream was complete and had never had an object. Such a stream began with a
// StartRV, and nothing has come of it yet.
func (st *Stream) Empty() bool { return st.empty }

// Filter is that of the last list that was recorded. Before the first list, it is that of the specification with which the
// stream was registered. If the stream is followed with another filter now, it has to be listed. The new filter counts from
// the Replaced of that list.
func (st *Stream) Filter() string { return st.state().filter }

// Schema is that under which all living objects were last compared with what the server serves, "" if that is not known. See Compared.
func (st *Stream) Schema() string { return st.state().schema }

// Excluded reports whether a label filter leaves out the object with this UID, as decided when it was first seen.
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

// publish shows readers the encoder's state.
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

// setExcluded reports whether anything changed.
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
