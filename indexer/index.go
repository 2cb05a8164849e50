package indexer

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"

	"github.com/kuberewind/kuberewind/patch"
)

// An IndexError says that an index function failed, or panicked, on an object.
type IndexError struct {
	Index string
	Key   string // "" for an object that was only asked about
	Err   error
}

func (e *IndexError) Error() string {
	if e.Key == "" {
		return fmt.Sprintf("index %q: %v", e.Index, e.Err)
	}
	return fmt.Sprintf("index %q of object %q: %v", e.Index, e.Key, e.Err)
}

// Unwrap gives the error of the function.
func (e *IndexError) Unwrap() error { return e.Err }

// An index maps values to keys. Its fields but the first three are protected by the Indexer's mu.
type index struct {
	name string
	of   cache.IndexFunc
	text func(patch.Doc) ([]string, error) // what of does, from the text; nil where of is not built in

	built  bool                // never false again
	keys   map[string]*posting // by value; none is empty, or values that never come back would pile up
	values map[string][]string // of each key, so that it can be taken out without asking the function again
}

// A posting is what an index has under one value. Its value is the one text that all objects with it share.
type posting struct {
	value string
	keys  sets.Set[string]
}

func newIndex(name string, of cache.IndexFunc, built bool) *index {
	x := &index{name: name, of: of, text: builtIn(of), built: built}
	x.reset()
	return x
}

func (x *index) reset() {
	x.keys, x.values = make(map[string]*posting), make(map[string][]string)
}

// valuesOf gives the values of an object, without repetitions.
func (x *index) valuesOf(key string, doc patch.Doc, object func() (any, error)) (values []string, err error) {
	if x.text != nil {
		values, err = x.text(doc)
	} else if decoded, failed := object(); failed != nil {
		err = failed
	} else {
		values, err = call(x.of, decoded)
	}
	if err != nil {
		return nil, &IndexError{Index: x.name, Key: key, Err: err}
	}
	// A copy, because the function may give the same slice again, or one that its caller holds.
	if len(values) < 2 {
		return slices.Clone(values), nil
	}
	return sets.List(sets.New(values...)), nil
}

// call turns a panic into an error: the function is not ours, and one object that it does not expect must not end the program.
func call(of cache.IndexFunc, object any) (values []string, err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("the index function panicked: %v", reason)
		}
	}()
	return of(object)
}

// put gives a key other values; none takes it out.
func (x *index) put(key string, values []string) {
	old := x.values[key]
	if slices.Equal(old, values) {
		return
	}
	for _, value := range old {
		p := x.keys[value]
		if p.keys.Delete(key); len(p.keys) == 0 {
			delete(x.keys, value)
		}
	}
	if len(values) == 0 {
		delete(x.values, key)
		return
	}
	x.values[key] = values
	for i, value := range values {
		p := x.keys[value]
		if p == nil {
			p = &posting{value: strings.Clone(value), keys: sets.New[string]()}
			x.keys[p.value] = p
		}
		values[i] = p.value
		p.keys.Insert(key)
	}
}

// all gives the keys under some values.
func (x *index) all(values ...string) sets.Set[string] {
	if len(values) == 1 {
		if p := x.keys[values[0]]; p != nil {
			return p.keys
		}
		return nil
	}
	keys := sets.New[string]()
	for _, value := range values {
		keys = keys.Union(x.all(value))
	}
	return keys
}

// Index gives copies of the objects that have a value in common with obj. obj itself need not be in the store.
func (x *Indexer) Index(indexName string, obj any) ([]any, error) {
	of, err := x.built(indexName)
	if err != nil {
		return nil, err
	}
	values, err := x.asked(of, obj)
	if err != nil {
		return nil, err
	}
	return x.found(of, values...)
}

// asked gives the values of an object that need not be in the store. The function sees it as it would come out of the store,
// if it could be in there.
func (x *Indexer) asked(of *index, obj any) ([]string, error) {
	doc, err := docOf(obj)
	if err == nil {
		_, err = metadataOf(doc)
	}
	if err != nil {
		of = &index{name: of.name, of: of.of}
		return of.valuesOf("", nil, func() (any, error) { return obj, nil })
	}
	return of.valuesOf("", doc, x.lazily(doc))
}

// ByIndex gives copies of the objects with a value.
func (x *Indexer) ByIndex(indexName, indexedValue string) ([]any, error) {
	of, err := x.built(indexName)
	if err != nil {
		return nil, err
	}
	return x.found(of, indexedValue)
}

func (x *Indexer) found(of *index, values ...string) ([]any, error) {
	x.mu.RLock()
	keys := of.all(values...)
	entries := make([]*entry, 0, len(keys))
	for key := range keys {
		entries = append(entries, x.entries[key])
	}
	x.mu.RUnlock()
	objects := make([]any, len(entries))
	for i, e := range entries {
		var err error
		if objects[i], err = x.decoded(e); err != nil {
			return nil, err
		}
	}
	return objects, nil
}

// IndexKeys gives the keys of the objects with a value, sorted.
func (x *Indexer) IndexKeys(indexName, indexedValue string) ([]string, error) {
	of, err := x.built(indexName)
	if err != nil {
		return nil, err
	}
	x.mu.RLock()
	defer x.mu.RUnlock()
	return sets.List(of.all(indexedValue)), nil
}

// ListIndexFuncValues gives all values of an index, in no order; none if there is no such index, or if it cannot be built.
func (x *Indexer) ListIndexFuncValues(indexName string) []string {
	values, err := x.IndexValues(indexName)
	if err != nil {
		return []string{}
	}
	return values
}

// IndexValues is ListIndexFuncValues with an error.
func (x *Indexer) IndexValues(indexName string) ([]string, error) {
	of, err := x.built(indexName)
	if err != nil {
		return nil, err
	}
	x.mu.RLock()
	defer x.mu.RUnlock()
	return slices.AppendSeq(make([]string, 0, len(of.keys)), maps.Keys(of.keys)), nil
}

// GetIndexers gives the index functions by name, in a map of its own.
func (x *Indexer) GetIndexers() cache.Indexers {
	x.mu.RLock()
	defer x.mu.RUnlock()
	indexers := make(cache.Indexers, len(x.indices))
	for name, of := range x.indices {
		indexers[name] = of.of
	}
	return indexers
}

// AddIndexers adds indices. The error names the existing ones, or is an *IndexError; then none is added.
func (x *Indexer) AddIndexers(newIndexers cache.Indexers) error {
	x.writing.Lock()
	defer x.writing.Unlock()
	fresh := make([]*index, 0, len(newIndexers))
	var conflict []string
	for name, of := range newIndexers {
		if x.indices[name] != nil {
			conflict = append(conflict, name)
		}
		fresh = append(fresh, newIndex(name, of, false))
	}
	if len(conflict) > 0 {
		slices.Sort(conflict)
		return fmt.Errorf("indexer conflict: %s", strings.Join(conflict, ", "))
	}
	for _, of := range fresh {
		if x.lazy {
			continue
		}
		if err := x.build(of); err != nil {
			return err
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, of := range fresh {
		x.indices[of.name] = of
	}
	return nil
}

// built gives an index that can be asked.
func (x *Indexer) built(name string) (*index, error) {
	x.mu.RLock()
	of := x.indices[name]
	ready := of != nil && of.built
	x.mu.RUnlock()
	if of == nil {
		return nil, fmt.Errorf("index with name %s does not exist: the indices are %s", name, strings.Join(slices.Sorted(maps.Keys(x.GetIndexers())), ", "))
	}
	if ready {
		return of, nil
	}
	x.writing.Lock()
	defer x.writing.Unlock()
	if of.built { // by another goroutine, while this one waited
		return of, nil
	}
	return of, x.build(of)
}

// build computes an index of what is in the store. The caller holds writing, so the store does not change meanwhile.
func (x *Indexer) build(of *index) error {
	entries := slices.Collect(maps.Values(x.entries))
	values := make([][]string, len(entries))
	one := func(i int) (err error) {
		if of.text == nil {
			doc := entries[i].doc() // Options.Decode may keep it.
			values[i], err = of.valuesOf(entries[i].key, doc, x.lazily(doc))
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
	x.mu.Lock()
	defer x.mu.Unlock()
	of.reset()
	for i, e := range entries {
		of.put(e.key, values[i])
	}
	of.built = true
	return nil
}

// each calls do for 0 to n-1: at several at once only if it may, because a function that is not ours need not expect it.
func each(n int, parallel bool, do func(int) error) error {
	workers := 1
	if parallel {
		workers = runtime.GOMAXPROCS(0)
	}
	var group errgroup.Group
	for worker := range workers {
		group.Go(func() error {
			for i := worker; i < n; i += workers {
				if err := do(i); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}
