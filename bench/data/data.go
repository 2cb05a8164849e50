// Package data makes the streams that the suite measures on: the lists and then the watch events that an API server would serve of a
// cluster. They come from a generator with a seed, or from a recording of a real control plane. A measure treats both the same way.
//
// # What it guarantees
//
//   - A Set gives the same bytes each time that it is read. So does another Set with the same settings.
//   - Objects are JSON as an API server writes it: with apiVersion and kind, members in its order, managedFields and all. They are
//     not canonical.
//   - Events are in the order of etcd. Resource versions never fall; only deletions may share one, as those of Events do that
//     expire with one etcd lease.
//   - A Set makes each event when it is read, so three million need not fit into memory.
package data

import (
	"iter"
	"time"

	"k8s.io/apimachinery/pkg/watch"
)

// Resource is one that is served. It is named as in discovery.
type Resource struct {
	Group, Version, Resource, Kind string
	Namespaced                     bool
}

// APIVersion is what objects of the resource have as their apiVersion.
func (r Resource) APIVersion() string {
	if r.Group == "" {
		return r.Version
	}
	return r.Group + "/" + r.Version
}

// Event is one change of one object, or an object that was there at the beginning.
type Event struct {
	Resource  int             // index of Set.Resources
	Type      watch.EventType // Added, Modified or Deleted; Added at the beginning
	Namespace string          // empty for an object of the cluster
	Name      string
	UID       string
	RV        uint64    // of the change, which is also in the object; of a deletion that of the deletion
	At        time.Time // when it was written, or, at the beginning, the beginning; never before the event before
	Object    []byte    // JSON; stays valid, is not to be changed
}

// Set is a cluster for a while. It can be gone through as often as wanted, also by several at once.
type Set interface {
	// Resources are those of the objects.
	Resources() []Resource
	// First gives the objects that are alive at the beginning, resource by resource, ordered as lists are: by namespace and name.
	First() iter.Seq[Event]
	// Events gives what happens then. After an error nothing follows.
	Events() iter.Seq2[Event, error]
	// Len is how many objects First gives, and how many events Events gives.
	Len() (live, events int)
}
