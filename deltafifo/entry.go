package deltafifo

import (
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/kuberewind/kuberewind/delta"
)

// Entry is one held delta, bookmark or marker.
type Entry struct {
	// Stream is the handle of the stream, as given in FIFOOptions.
	Stream any
	// Delta is the delta. Its Type is empty for bookmarks and markers. Its Object is the given object after the
	// transformer. For a deletion that was inferred, or that the caller gave so, it is a
	// cache.DeletedFinalStateUnknown.
	Delta cache.Delta
	// Source is empty for bookmarks and markers. An entry with a source and no delta passes over an event (FIFO.Skip).
	Source delta.Source
	// Observed is when the entry reached the queue, before any wait for room. It does not decrease in queue order.
	Observed time.Time
	// Position is the resource version up to which the stream is complete once this entry is committed. If it is empty,
	// the entry does not move the position.
	Position string
	// ListRV is set for inferred deletions. It is the resource version of the list without the object: the deletion
	// happened at or before it.
	ListRV string
	// Marker is set if the stream was interrupted, resumed or replaced.
	Marker *delta.Marker
	// Others are the other streams that the marker is about.
	Others []OtherStream
	// Attached is the result of FIFOOptions.Attach.
	Attached any
	// Bytes is the entry's share of the queue's bound.
	Bytes int
}

// OtherStream is a further stream that a marker is about, and the start of its gap.
type OtherStream struct {
	Stream   any // its handle
	FromRV   string
	FromTime time.Time
}

// superseded reports whether the queue knows a later version of the same key, which is on disk only.
func (n *node) superseded(tail *node) bool {
	return n.copied && tail != nil && tail != n && tail.entry.Bytes == 0 && tail.record > n.record
}

// Move moves a position of the entry's stream as far as the entry does.
func (e *Entry) Move(at *delta.Position) {
	switch {
	case e.Position == "":
	case e.Source == delta.SourceWatch:
		at.Advance(e.Position, e.Delta.Type == "" || e.Delta.Type == delta.Deleted) // The event that was passed over may be a delete.
	default:
		*at = delta.At(e.Position) // a bookmark, or the end of a list
	}
}

// Bookmark reports whether the entry does nothing except move the position.
func (e *Entry) Bookmark() bool { return e.Marker == nil && e.Delta.Type == "" }

const (
	// entryBytes is the size of an entry without its object: the node, the key, and the strings to which it points.
	entryBytes = 256
	// unsizedBytes is the assumed size of objects without a Size method.
	unsizedBytes = 512
)

// bytesOf returns the bytes for which an entry with obj counts.
func bytesOf(obj any) int {
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = tombstone.Obj
	}
	if sized, ok := obj.(interface{ Size() int }); ok {
		return entryBytes + max(0, sized.Size())
	}
	return entryBytes + unsizedBytes
}

// positionOf returns the resource version of an object that a watch served. For a tombstone it returns "": a tombstone
// has the last version that a client saw, not the version of the deletion.
func positionOf(obj any) string {
	if versioned, ok := obj.(interface{ GetResourceVersion() string }); ok {
		return versioned.GetResourceVersion()
	}
	return ""
}
