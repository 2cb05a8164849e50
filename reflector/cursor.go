package reflector

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kuberewind/kuberewind/delta"
)

// batchSettle is how long a stream must stay open after a delete to show that
// no more deletes of the same resource version follow. The server sends them
// back to back.
const batchSettle = 2 * time.Second

// cursor is a place in a stream: what has been seen, and from where to watch so
// that nothing is left out.
//
// I2: objects that expire on one etcd lease are deleted in one transaction and
// share a resource version. A watch goes on strictly after its resource
// version, so while more deletes of the newest one may follow, the place to go
// on from is before it.
type cursor struct {
	rv string // newest resource version seen, "" if none

	// Valid while deletes is not nil: deletes has what was deleted at rv, before
	// is the newest resource version that is complete, and lastDelete is when
	// the present watch last sent one of the deletes, zero if it did not yet.
	before     string
	deletes    map[identity]struct{}
	lastDelete time.Time
}

// identity tells objects apart that have no UID, too.
type identity struct {
	uid             types.UID
	namespace, name string
}

func identityOf(object metav1.Object) identity {
	return identity{object.GetUID(), object.GetNamespace(), object.GetName()}
}

// sighting is what the cursor needs of an event. It is read before the store gets
// the object, because the store owns the object from then on and may change it (I1).
type sighting struct {
	kind watch.EventType
	rv   string
	id   identity
}

func sightingOf(kind watch.EventType, object metav1.Object) sighting {
	return sighting{kind, object.GetResourceVersion(), identityOf(object)}
}

// resumeFrom is the resource version from which to watch.
func (c *cursor) resumeFrom() string {
	if c.deletes != nil {
		return c.before
	}
	return c.rv
}

// repeats reports an event that was seen already and comes again because the
// watch began before it.
func (c *cursor) repeats(event sighting, now time.Time) bool {
	if event.kind != watch.Deleted || c.deletes == nil || event.rv != c.rv {
		return false
	}
	_, seen := c.deletes[event.id]
	if seen {
		c.lastDelete = now
	}
	return seen
}

// saw moves the cursor to an event, never back, and reports whether it moved.
// Events without a resource version (aggregated APIs) leave it where it is.
func (c *cursor) saw(event sighting, now time.Time) bool {
	moved := isPosition(event.rv) && delta.Passes(event.rv, c.rv)
	switch {
	case moved && event.kind == watch.Deleted:
		c.before, c.rv = c.rv, event.rv
		c.deletes = map[identity]struct{}{event.id: {}}
		c.lastDelete = now
	case moved:
		c.rv, c.deletes = event.rv, nil
	case event.rv != c.rv || c.deletes == nil:
	case event.kind == watch.Deleted:
		c.deletes[event.id] = struct{}{}
		c.lastDelete = now
	case event.kind == watch.Bookmark:
		c.deletes = nil
	}
	return moved
}

// began notes that another watch is read: what the one before had sent last
// says nothing about the time since.
func (c *cursor) began() { c.lastDelete = time.Time{} }

// ended notes that a watch has ended which was waited for until now.
func (c *cursor) ended(now time.Time) {
	if !c.lastDelete.IsZero() && now.Sub(c.lastDelete) >= batchSettle {
		c.deletes = nil
	}
}

// isPosition reports whether a watch from this resource version would be a
// continuation: "" and "0" have other meanings.
func isPosition(rv string) bool { return rv != "" && rv != "0" }
