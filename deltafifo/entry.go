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
	// Delta is the delta; its Type is empty for bookmarks and markers. Its Object is as given and transformed, or a
	// cache.DeletedFinalStateUnknown for a deletion that was inferred or that the caller gave as such.
	Delta cache.Delta
	// Source is empty for bookmarks and markers. An entry with a source and no delta passes over an event (FIFO.Pass).
	Source delta.Source
	// Observed is when the entry reached the queue, before any wait for room. It does not decrease in queue order.
	Observed time.Time
	// Position is the resource version up to which the stream is complete once this entry is committed. Empty, the
	// entry does not move it.
	Position string
	// ListRV is the resource version of the list that showed the deletion, for inferred deletions: it happened at or before it.
	ListRV string
	// Marker is set where the stream was interrupted, resumed or replaced.
	Marker *delta.Marker
	// Beside are other streams that the marker is about, too.
	Beside []Beside
	// Attached is what FIFOOptions.Attach gave.
	Attached any
	// Bytes is what the entry counts for in the queue's bound.
	Bytes int
}

// Beside is another stream that a marker is about, and from where on.
type Beside struct {
	Stream   any // its handle
	FromRV   string
	FromTime time.Time
}

// superseded tells that a later version of the same key is known, which is on disk only.
func (n *node) superseded(tail *node) bool {
	return n.copied && tail != nil && tail != n && tail.entry.Bytes == 0 && tail.record > n.record
}

// Move moves the position of the entry's stream as far as the entry does.
func (e *Entry) Move(at *delta.Position) {
	switch {
	case e.Position == "":
	case e.Source == delta.SourceWatch:
		at.Advance(e.Position, e.Delta.Type == "" || e.Delta.Type == delta.Deleted) // What is passed over may be a delete.
	default:
		*at = delta.At(e.Position) // a bookmark, or the end of a list
	}
}

// Bookmark tells whether the entry does nothing but move the position.
func (e *Entry) Bookmark() bool { return e.Marker == nil && e.Delta.Type == "" }

const (
	// entryBytes is what an entry takes besides its object: the node, the key, the strings that it points to.
	entryBytes = 256
	// unsizedBytes is assumed of objects that do not tell their size.
	unsizedBytes = 512
)

// bytesOf tells what an entry with obj counts for.
func bytesOf(obj any) int {
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = tombstone.Obj
	}
	if sized, ok := obj.(interface{ Size() int }); ok {
		return entryBytes + max(0, sized.Size())
	}
	return entryBytes + unsizedBytes
}

// positionOf gives the resource version of an object as watched. A tombstone has none: the version in it is the last
// one that somebody saw, not that of the deletion.
func positionOf(obj any) string {
	if versioned, ok := obj.(interface{ GetResourceVersion() string }); ok {
		return versioned.GetResourceVersion()
	}
	return ""
}
