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

// An IndexError is an error or a panic of an index function.
type IndexError struct {
	Index string
	Key   string // "" for an object that need not be in the store
	Err   error
}

func (e *IndexError) Error() string {
	if e.Key == "" {
		return fmt.Sprintf("index %q: %v", e.Index, e.Err)
	}
	return fmt.Sprintf("index %q of object %q: %v", e.Index, e.Key, e.Err)
}

// Unwrap returns the error of the function.
func (e *IndexError) Unwrap() error { return e.Err }

// An index maps values to keys. The Indexer's mu protects all its fields except the first three.
type index struct {
	name string
	of   cache.IndexFunc
	text func(patch.Doc) ([]string, error) // does the same as of, from the text; nil if of is not built in

	built  bool                // never false again
	keys   map[string]*posting // by value; none is empty, because values that never return would pile up
	values map[string][]string // by key, so that a key can be removed without a call of the function
}

// A posting holds the keys of one value. All objects with the value share its text.
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

// valuesOf returns the values of an object, without repetitions.
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
	// A copy, because the function may return the same slice again, or one that its caller holds.
	if len(values) < 2 {
		return slices.Clone(values), nil
	}
	return sets.List(sets.New(values...)), nil
}

// call turns a panic into an error. The function belongs to the caller, and an object that it does not expect must not
// end the program.
func call(of cache.IndexFunc, object any) (values []string, err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("the index function panicked: %v", reason)
		}
	}()
	return of(object)
}

// put sets the values of a key. Without values, it removes the key.
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

// all returns the keys under some values.
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

// valuesOfAny returns the values of an object that need not be in the store. If the object could be stored, the
// function gets it as the store would return it.
func (x *index) valuesOfAny(obj any, codec *codec) ([]string, error) {
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

// each calls do for 0 to n-1. It runs calls concurrently only if parallel is true, because an index function of a
// caller need not expect it.
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
