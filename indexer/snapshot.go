package indexer

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/kuberewind/kuberewind/patch"
)

// A Snapshot is a cluster at one instant: an Indexer for each resource, with the built-in indices. Many goroutines may
// call its methods.
type Snapshot struct {
	indexers cache.Indexers
	options  Options

	mu        sync.RWMutex // protects resources
	resources map[schema.GroupResource]*Indexer
}

// An Item is one object of a Snapshot.
type Item struct {
	Resource schema.GroupResource
	Key      string // "namespace/name", or "name"
	Doc      patch.Doc
}

// NewSnapshot returns an empty Snapshot. Its Indexers have these indices and the built-in ones, whose names are
// reserved. An index is built at its first use, whatever Options.Lazy is.
func NewSnapshot(indexers cache.Indexers, o Options) *Snapshot {
	s := &Snapshot{indexers: make(cache.Indexers), options: o, resources: make(map[schema.GroupResource]*Indexer)}
	maps.Copy(s.indexers, indexers)
	maps.Copy(s.indexers, BuiltIn())
	s.options.Lazy = true
	return s
}

// Add stores an object and replaces any with its name. It accepts the same objects as Indexer.Add.
func (s *Snapshot) Add(resource schema.GroupResource, object any) error {
	return s.Resource(resource).Add(object)
}

// AddDoc stores an object for a rebuild: see Indexer.AddDoc.
func (s *Snapshot) AddDoc(resource schema.GroupResource, namespace, name, rv string, doc patch.Doc) error {
	return s.Resource(resource).AddDoc(namespace, name, rv, doc)
}

// Resource returns the Indexer of a resource, an empty one if it has no objects.
func (s *Snapshot) Resource(resource schema.GroupResource) *Indexer {
	s.mu.RLock()
	x := s.resources[resource]
	s.mu.RUnlock()
	if x != nil {
		return x
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if x = s.resources[resource]; x == nil {
		x = New(nil, s.indexers, s.options)
		s.resources[resource] = x
	}
	return x
}

// Resources returns the resources that have objects, by group and name.
func (s *Snapshot) Resources() []schema.GroupResource {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var resources []schema.GroupResource
	for resource, x := range s.resources {
		if x.Len() > 0 {
			resources = append(resources, resource)
		}
	}
	slices.SortFunc(resources, func(a, b schema.GroupResource) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource))
	})
	return resources
}

// Len returns the number of objects.
func (s *Snapshot) Len() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	n := 0
	for _, x := range s.resources {
		n += x.Len()
	}
	return n
}

// All iterates over all objects, by resource and key. It unpacks one at a time.
func (s *Snapshot) All() iter.Seq[Item] {
	return func(yield func(Item) bool) {
		for _, resource := range s.Resources() {
			for key, doc := range s.Resource(resource).All() {
				if !yield(Item{Resource: resource, Key: key, Doc: doc}) {
					return
				}
			}
		}
	}
}

// ByUID returns the object with a UID, of any resource. The first call builds an index of each resource.
func (s *Snapshot) ByUID(uid types.UID) (Item, bool) {
	for _, resource := range s.Resources() {
		x := s.Resource(resource)
		keys, err := x.IndexKeys(UIDIndex, string(uid))
		if err != nil || len(keys) == 0 {
			continue // The function of this index never fails.
		}
		if doc, ok := x.Doc(keys[0]); ok {
			return Item{Resource: resource, Key: keys[0], Doc: doc}, true
		}
	}
	return Item{}, false
}
