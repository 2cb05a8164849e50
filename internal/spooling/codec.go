package spooling

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/deltafifo"
	"github.com/kuberewind/kuberewind/internal/canonical"
	"github.com/kuberewind/kuberewind/internal/redact"
	"github.com/kuberewind/kuberewind/kube"
	"github.com/kuberewind/kuberewind/patch"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// Stream is the part of a stream that a spool needs. The queue knows the stream by the same value.
type Stream interface {
	Name() string
	Resource() kube.Resource     // the name of the stream in its entries
	Redaction() *redact.Resource // nil if nothing is hidden
	Recorded() *postgres.Stream
	Decided() map[types.UID]bool     // the recorded decisions: true for recorded lives, false for excluded ones
	Remembers(namespace string) bool // whether such decisions have to be remembered
}

// Codec makes records of entries: the length of a head, the head as JSON, and the object's canonical text. The text
// holds no value that must not be kept (I9). A record names a stream by its resource, never by its number in a
// database.
type Codec struct {
	// Stream returns the stream of a resource.
	Stream func(kube.Resource) (Stream, error)
}

// entryHead is an entry without its object.
type entryHead struct {
	Resource  entryResource    `json:"resource"`
	Type      delta.Type       `json:"type,omitempty"`
	Source    delta.Source     `json:"source,omitempty"`
	Observed  time.Time        `json:"observed"`
	Position  string           `json:"position,omitempty"`
	ListRV    string           `json:"list_rv,omitempty"`
	Marker    *delta.Marker    `json:"marker,omitempty"`
	Others    []entryOther     `json:"beside,omitempty"`
	Bytes     int              `json:"bytes"`
	Gone      *entryGone       `json:"gone,omitempty"`
	Decisions []entryExclusion `json:"decisions,omitempty"`
}

type entryResource struct {
	Group      string `json:"group,omitempty"`
	Version    string `json:"version"`
	Name       string `json:"name"`
	Kind       string `json:"kind"`
	Namespaced bool   `json:"namespaced,omitempty"`
}

// entryOther is another stream that the marker is about.
type entryOther struct {
	Resource entryResource `json:"resource"`
	FromRV   string        `json:"from_rv,omitempty"`
	FromTime time.Time     `json:"from_time"`
}

// entryGone is an object that was found to be gone.
type entryGone struct {
	Key string    `json:"key"`
	UID types.UID `json:"uid,omitempty"`
}

// GetUID implements the interface that the pump looks for.
func (g *entryGone) GetUID() types.UID { return g.UID }

// keyframe is an object of the record that is stored again, as it comes back from the spool. No watch or list served
// it.
type keyframe struct{ *kube.Object }

// Version is the API version in which it was served.
func (k keyframe) Version() string { return k.GroupVersionKind().Version }

// entryExclusion is a decision of a label filter about a life.
type entryExclusion struct {
	Excluded bool      `json:"excluded,omitempty"`
	UID      types.UID `json:"uid"`
	Key      string    `json:"key,omitempty"`
}

var errEntry = fmt.Errorf("%w of a recorder's spool", deltafifo.ErrRecord)

// AppendEntry implements deltafifo.Codec.
func (c Codec) AppendEntry(to []byte, e *deltafifo.Entry) ([]byte, error) {
	s, ok := e.Stream.(Stream)
	if !ok {
		return nil, fmt.Errorf("an entry of a %T cannot be spooled", e.Stream)
	}
	head := entryHead{
		Resource: entryResourceOf(s.Resource()), Type: e.Delta.Type, Source: e.Source, Observed: e.Observed, Position: e.Position,
		ListRV: e.ListRV, Marker: e.Marker, Bytes: e.Bytes, Decisions: decisionsOf(e),
	}
	for _, b := range e.Others {
		other, ok := b.Stream.(Stream)
		if !ok {
			return nil, fmt.Errorf("an entry about a %T cannot be spooled", b.Stream)
		}
		head.Others = append(head.Others, entryOther{entryResourceOf(other.Resource()), b.FromRV, b.FromTime})
	}
	var doc []byte
	switch obj := e.Delta.Object.(type) {
	case nil:
	case interface{ Doc() patch.Doc }: // *kube.Object, postgres.KnownObject and keyframe
		doc = obj.Doc()
	case cache.DeletedFinalStateUnknown:
		head.Gone = &entryGone{Key: obj.Key}
		if last, ok := obj.Obj.(interface{ GetUID() types.UID }); ok {
			head.Gone.UID = last.GetUID()
		}
	default:
		return nil, fmt.Errorf("stream %s: a delta of %T cannot be spooled", s.Name(), obj)
	}
	text, err := json.Marshal(head)
	if err != nil {
		return nil, err
	}
	to = binary.AppendUvarint(to, uint64(len(text)))
	return append(append(to, text...), doc...), nil
}

func decisionsOf(e *deltafifo.Entry) []entryExclusion {
	items, _ := e.Attached.([]postgres.Item)
	decisions := make([]entryExclusion, 0, len(items))
	for _, item := range items {
		decisions = append(decisions, entryExclusion{Excluded: item.Kind == postgres.Excluded, UID: item.UID, Key: item.Key})
	}
	return decisions
}

// DecodeEntry implements deltafifo.Codec.
func (c Codec) DecodeEntry(record []byte) (deltafifo.Entry, error) {
	length, n := binary.Uvarint(record)
	if n <= 0 || uint64(len(record)-n) < length {
		return deltafifo.Entry{}, errEntry
	}
	text, doc := record[n:n+int(length)], record[n+int(length):]
	var head entryHead
	if err := json.Unmarshal(text, &head); err != nil {
		return deltafifo.Entry{}, fmt.Errorf("%w: %w", errEntry, err)
	}
	s, err := c.Stream(head.Resource.resource())
	if err != nil {
		return deltafifo.Entry{}, err
	}
	e := deltafifo.Entry{
		Stream: s, Delta: cache.Delta{Type: head.Type}, Source: head.Source, Observed: head.Observed, Position: head.Position,
		ListRV: head.ListRV, Marker: head.Marker, Bytes: head.Bytes,
	}
	for _, b := range head.Others {
		other, err := c.Stream(b.Resource.resource())
		if err != nil {
			return deltafifo.Entry{}, err
		}
		e.Others = append(e.Others, deltafifo.OtherStream{Stream: other, FromRV: b.FromRV, FromTime: b.FromTime})
	}
	if items := head.decisions(s); items != nil {
		e.Attached = items
	}
	switch {
	case head.Gone != nil:
		e.Delta.Object = cache.DeletedFinalStateUnknown{Key: head.Gone.Key, Obj: head.Gone}
	case len(doc) > 0:
		object, err := restored(s, doc)
		if err != nil {
			return deltafifo.Entry{}, fmt.Errorf("%w: %w", errEntry, err)
		}
		if e.Delta.Object = object; e.Source == delta.SourceResync {
			e.Delta.Object = keyframe{object}
		}
	case head.Type != "":
		return deltafifo.Entry{}, errEntry
	}
	return e, nil
}

// restored returns the object of a record under the present rules. I9: there may have been fewer rules when it was
// spooled.
func restored(s Stream, doc patch.Doc) (*kube.Object, error) {
	hidden, err := canonical.Restorer(s.Redaction())(bytes.Clone(doc))
	if err != nil {
		return nil, err
	}
	return kube.Restore(hidden)
}

func (h *entryHead) decisions(s Stream) []postgres.Item {
	var items []postgres.Item
	for _, d := range h.Decisions {
		kind := postgres.Unexcluded
		if d.Excluded {
			kind = postgres.Excluded
		}
		items = append(items, postgres.Item{Stream: s.Recorded().ID(), Kind: kind, UID: d.UID, Key: d.Key})
	}
	return items
}

func (r entryResource) resource() kube.Resource {
	return kube.Resource{Group: r.Group, Version: r.Version, Name: r.Name, Kind: r.Kind, Namespaced: r.Namespaced}
}

func entryResourceOf(r kube.Resource) entryResource {
	return entryResource{Group: r.Group, Version: r.Version, Name: r.Name, Kind: r.Kind, Namespaced: r.Namespaced}
}
