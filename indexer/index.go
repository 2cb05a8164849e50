package indexer

import (
	"fmt"
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

// asked gives the values of an object that need not be in the store. The function sees it as it would come out of the store,
// if it could be in there.
func (x *index) asked(obj any, codec *codec) ([]string, error) {
	doc, err := docOf(obj)
	if err == nil {
		_, err = metadataOf(doc)
	}
	if err != nil {
		as := &index{name: x.name, of: x.of}
		return as.valuesOf("", nil, func() (any, error) { return obj, nil })
	}
	return x.valuesOf("", doc, codec.lazily(doc))
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
