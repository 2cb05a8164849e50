package indexer

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"
)

// A store holds the objects of an Indexer, and their entries in its indices.
type store struct {
	codec *codec

	// The goroutine that changes the store or builds an index holds writing, so that index functions can run without
	// blocking readers. It is locked before mu.
	writing sync.Mutex
	mu      sync.RWMutex // protects the fields below; only the holder of writing locks it, to insert finished parts
	entries map[string]*entry
	indices map[string]*index
	rv      string
}

func (s *store) entry(key string) *entry {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.entries[key]
}

// all returns the entries, in no order.
func (s *store) all() []*entry {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Collect(maps.Values(s.entries))
}

func (s *store) version() string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.rv
}

func (s *store) len() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.entries)
}

func (s *store) keys() []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.AppendSeq(make([]string, 0, len(s.entries)), maps.Keys(s.entries))
}

// keysUnder returns the keys of a value in an index, sorted.
func (s *store) keysUnder(of *index, value string) []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return sets.List(of.all(value))
}

// valuesOf returns the values of an index, in no order.
func (s *store) valuesOf(of *index) []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.AppendSeq(make([]string, 0, len(of.keys)), maps.Keys(of.keys))
}

// indexers returns the index functions by name, in a new map.
func (s *store) indexers() cache.Indexers {
	s.mu.RLock()
	defer s.mu.RUnlock()
	indexers := make(cache.Indexers, len(s.indices))
	for name, of := range s.indices {
		indexers[name] = of.of
	}
	return indexers
}

// under returns the entries of some values in an index, in no order.
func (s *store) under(of *index, values ...string) []*entry {
	s.mu.RLock()
	defer s.mu.RUnlock()
	keys := of.all(values...)
	entries := make([]*entry, 0, len(keys))
	for key := range keys {
		entries = append(entries, s.entries[key])
	}
	return entries
}

// keep makes one change.
func (s *store) keep(c *change) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	if err := s.index(c); err != nil {
		return err
	}
	s.commit(c.rv, *c)
	return nil
}

// index computes the values of a change in the indices that are built. The caller holds writing.
func (s *store) index(c *change) error {
	if c.entry == nil {
		return nil
	}
	defer func() { c.doc = nil }()
	lazy := s.codec.lazily(c.doc)
	for _, of := range s.indices {
		if !of.built {
			continue
		}
		values, err := of.valuesOf(c.key, c.doc, lazy)
		if err != nil {
			return err
		}
		if c.values == nil {
			c.values = make(map[*index][]string, len(s.indices))
		}
		c.values[of] = values
	}
	return nil
}

// commit makes changes visible, all at once. The caller holds writing.
func (s *store) commit(rv *string, changes ...change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range changes {
		s.put(&changes[i])
	}
	if rv != nil {
		s.rv = *rv
	}
}

// keepGood makes all changes without an error at once, and sets the errors of those that cannot be indexed.
func (s *store) keepGood(all []change, errs []error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	good := make([]change, 0, len(all))
	var rv *string
	for i := range all {
		if errs[i] == nil {
			errs[i] = s.index(&all[i])
		}
		if errs[i] == nil {
			good = append(good, all[i])
			rv = all[i].rv
		}
	}
	s.commit(rv, good...)
}

func (s *store) bookmark(rv string) {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.commit(&rv)
}

// replace replaces all objects by changes. After an error the store is unchanged.
func (s *store) replace(changes []change, rv string) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	for i := range changes {
		if err := s.index(&changes[i]); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entries = make(map[string]*entry, len(changes))
	for _, of := range s.indices {
		of.reset()
	}
	for i := range changes {
		s.put(&changes[i])
	}
	s.rv = rv
	return nil
}

// put changes one key. The caller holds mu.
func (s *store) put(c *change) {
	if c.entry == nil {
		delete(s.entries, c.key)
	} else {
		s.entries[c.key] = c.entry
	}
	for _, of := range s.indices {
		if of.built {
			of.put(c.key, c.values[of])
		}
	}
}

// built returns an index that is ready for use.
func (s *store) built(name string) (*index, error) {
	s.mu.RLock()
	of := s.indices[name]
	ready := of != nil && of.built
	s.mu.RUnlock()
	if of == nil {
		return nil, fmt.Errorf("index with name %s does not exist: the indices are %s", name, strings.Join(slices.Sorted(maps.Keys(s.indexers())), ", "))
	}
	if ready {
		return of, nil
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	if of.built { // by another goroutine, while this one waited
		return of, nil
	}
	return of, s.build(of)
}

// build computes an index of the objects in the store. The caller holds writing, so the store does not change
// meanwhile.
func (s *store) build(of *index) error {
	entries := slices.Collect(maps.Values(s.entries))
	values := make([][]string, len(entries))
	one := func(i int) (err error) {
		if of.text == nil {
			doc := entries[i].doc() // Options.Decode may keep it.
			values[i], err = of.valuesOf(entries[i].key, doc, s.codec.lazily(doc))
			return err
		}
		buffer := buffers.Get().(*[]byte)
		defer buffers.Put(buffer)
		*buffer = entries[i].unpack((*buffer)[:cap(*buffer)])
		values[i], err = of.valuesOf(entries[i].key, *buffer, nil)
		return err
	}
	if err := each(len(entries), of.text != nil, one); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	of.reset()
	for i, e := range entries {
		of.put(e.key, values[i])
	}
	of.built = true
	return nil
}

// addIndices adds indices, all or none. If build is true, it also builds them.
func (s *store) addIndices(functions cache.Indexers, build bool) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	fresh := make([]*index, 0, len(functions))
	var conflict []string
	for name, of := range functions {
		if s.indices[name] != nil {
			conflict = append(conflict, name)
		}
		fresh = append(fresh, newIndex(name, of, false))
	}
	if len(conflict) > 0 {
		slices.Sort(conflict)
		return fmt.Errorf("indexer conflict: %s", strings.Join(conflict, ", "))
	}
	for _, of := range fresh {
		if !build {
			continue
		}
		if err := s.build(of); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, of := range fresh {
		s.indices[of.name] = of
	}
	return nil
}
