package reflector

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kuberewind/kuberewind/delta"
)

// batchTimeout is how long a stream must stay open after a delete to show that no more deletes of the same resource
// version follow. The server sends them one right after the other.
const batchTimeout = 2 * time.Second

// cursor is a place in a stream, with the deletes that a watch from there must skip. While the position is open, the
// server sends the deletes of its newest resource version again.
type cursor struct {
	delta.Position

	deletes    map[identity]struct{} // of Newest, while the position is open
	lastDelete time.Time             // when the present watch last sent one of them, zero if it has not
}

// identity distinguishes objects, even if they have no UID.
type identity struct {
	uid             types.UID
	namespace, name string
}

func identityOf(object metav1.Object) identity {
	return identity{object.GetUID(), object.GetNamespace(), object.GetName()}
}

// sighting has the fields of an event that the cursor needs. The reflector reads them before the store gets the object:
// from then on the store owns the object and may change it (I1).
type sighting struct {
	kind watch.EventType
	rv   string
	id   identity
}

func sightingOf(kind watch.EventType, object metav1.Object) sighting {
	return sighting{kind, object.GetResourceVersion(), identityOf(object)}
}

// repeats reports whether the stream has seen the event already. The server sends it again because the watch began
// before it.
func (c *cursor) repeats(event sighting, now time.Time) bool {
	if event.kind != watch.Deleted || !c.Open() || event.rv != c.Newest {
		return false
	}
	_, seen := c.deletes[event.id]
	if seen {
		c.lastDelete = now
	}
	return seen
}

// saw moves the cursor to an event, never back, and reports whether the position has changed.
func (c *cursor) saw(event sighting, now time.Time) bool {
	before := c.Position
	switch event.kind {
	case watch.Bookmark:
		c.Bookmark(event.rv)
	case watch.Deleted:
		if c.Advance(event.rv, true) {
			c.deletes = map[identity]struct{}{}
		}
		if c.Open() && event.rv == c.Newest {
			c.deletes[event.id], c.lastDelete = struct{}{}, now
		}
	default:
		c.Advance(event.rv, false)
	}
	return c.Position != before
}

// began notes that another watch is read. The last delete of the previous watch says nothing about the time since.
func (c *cursor) began() { c.lastDelete = time.Time{} }

// ended notes that a watch has ended, and that the reflector read it until now.
func (c *cursor) ended(now time.Time) {
	if !c.lastDelete.IsZero() && now.Sub(c.lastDelete) >= batchTimeout {
		c.CompleteNewest()
	}
}
