package indexer

import (
	"fmt"
	"iter"
	"slices"

	"k8s.io/client-go/tools/cache"

	"github.com/kuberewind/kuberewind/patch"
)

// Options configure an Indexer. With the zero value it behaves as client-go's does.
type Options struct {
	// Decode makes the objects that Get, List and index functions receive from an object's text. Nil means Decode,
	// which makes an *unstructured.Unstructured. The Indexer tries it on each object before it keeps the object. Many
	// goroutines call it.
	Decode func(patch.Doc) (any, error)
	// Lazy builds an index at its first use, and not before.
	Lazy bool
}

// An Indexer is a cache.Indexer that keeps its objects compressed.
type Indexer struct {
	stager stager
	codec  *codec
	lazy   bool
	store  store
}

var (
	_ cache.Indexer          = (*Indexer)(nil)
	_ cache.TransactionStore = (*Indexer)(nil)
)

// New returns an empty Indexer. A nil keyFunc makes "namespace/name" and, for Delete and Get, also accepts tombstones.
// A keyFunc gets the object that the caller passed, or for a text its metadata (*metav1.PartialObjectMetadata).
func New(keyFunc cache.KeyFunc, indexers cache.Indexers, o Options) *Indexer {
	decode := newCodec(o.Decode)
	x := &Indexer{
		stager: stager{keyFunc: keyFunc, codec: decode}, codec: decode, lazy: o.Lazy,
		store: store{codec: decode, entries: make(map[string]*entry), indices: make(map[string]*index, len(indexers))},
	}
	for name, of := range indexers {
		x.store.indices[name] = newIndex(name, of, !o.Lazy)
	}
	return x
}

// Add stores an object and replaces any with its key. The error is a cache.KeyError, an *IndexError, or says why the
// object cannot be stored. After an error the store is unchanged.
func (x *Indexer) Add(obj any) error {
	staged, err := x.stager.stage(obj)
	if err != nil {
		return err
	}
	return x.store.keep(&staged)
}

// AddDoc stores a text whose namespace, name and resource version the caller knows. It reads no part of the text,
// unless an index or Options.Decode needs it. If the Indexer has a keyFunc, AddDoc uses that.
func (x *Indexer) AddDoc(namespace, name, rv string, doc patch.Doc) error {
	if x.stager.keyFunc != nil {
		return x.Add(doc)
	}
	staged, err := x.stager.stageDoc(joined(namespace, name), rv, doc)
	if err != nil {
		return err
	}
	return x.store.keep(&staged)
}

// Update is Add.
func (x *Indexer) Update(obj any) error { return x.Add(obj) }

// Delete removes the object with the key of obj, if there is one. The error is a cache.KeyError.
func (x *Indexer) Delete(obj any) error {
	staged, err := x.stager.stageDelete(obj)
	if err != nil {
		return err
	}
	return x.store.keep(&staged)
}

// Transaction makes several changes at once: readers see all of them or none. It skips an operation that fails, and
// reports it.
func (x *Indexer) Transaction(txns ...cache.Transaction) *cache.TransactionError {
	failed := &cache.TransactionError{SuccessfulIndices: []int{}, TotalTransactions: len(txns)}
	all := make([]change, len(txns))
	errs := make([]error, len(txns))
	for i, txn := range txns {
		switch txn.Type {
		case cache.TransactionTypeAdd, cache.TransactionTypeUpdate:
			all[i], errs[i] = x.stager.stage(txn.Object)
		case cache.TransactionTypeDelete:
			all[i], errs[i] = x.stager.stageDelete(txn.Object)
		default:
			errs[i] = fmt.Errorf("unknown type %q of a transaction", txn.Type)
		}
	}
	x.store.keepGood(all, errs)
	for i, err := range errs {
		if err != nil {
			failed.Errors = append(failed.Errors, err)
		} else {
			failed.SuccessfulIndices = append(failed.SuccessfulIndices, i)
		}
	}
	if len(failed.Errors) == 0 {
		return nil
	}
	return failed
}

// Replace replaces all objects by a list. After an error the store is unchanged.
func (x *Indexer) Replace(list []any, resourceVersion string) error {
	staged := make([]change, len(list))
	for i, obj := range list {
		var err error
		if staged[i], err = x.stager.stage(obj); err != nil {
			return err
		}
	}
	return x.store.replace(staged, resourceVersion)
}

// Resync does nothing, as in client-go.
func (x *Indexer) Resync() error { return nil }

// Bookmark sets the resource version that LastStoreSyncResourceVersion returns.
func (x *Indexer) Bookmark(rv string) { x.store.bookmark(rv) }

// LastStoreSyncResourceVersion returns the resource version of the last object written, list or bookmark.
func (x *Indexer) LastStoreSyncResourceVersion() string { return x.store.version() }

// Len returns the number of objects.
func (x *Indexer) Len() int { return x.store.len() }

// List returns all objects, in no order, each a new copy. It omits an object that Options.Decode accepted when it was
// added and no longer accepts: All and Doc return it.
func (x *Indexer) List() []any {
	entries := x.store.all()
	objects := make([]any, 0, len(entries))
	for _, e := range entries {
		if object, err := x.codec.decoded(e); err == nil {
			objects = append(objects, object)
		}
	}
	return objects
}

// ListKeys returns the keys of all objects, in no order.
func (x *Indexer) ListKeys() []string { return x.store.keys() }

// Get returns a copy of the object with the key of obj.
func (x *Indexer) Get(obj any) (item any, exists bool, err error) {
	key, _, err := x.stager.identity(obj)
	if err != nil {
		return nil, false, err
	}
	return x.GetByKey(key)
}

// GetByKey returns a copy of the object with a key. The error is an error of Options.Decode.
func (x *Indexer) GetByKey(key string) (item any, exists bool, err error) {
	e := x.store.entry(key)
	if e == nil {
		return nil, false, nil
	}
	item, err = x.codec.decoded(e)
	return item, err == nil, err
}

// Doc returns the text of the object with a key.
func (x *Indexer) Doc(key string) (doc patch.Doc, exists bool) {
	e := x.store.entry(key)
	if e == nil {
		return nil, false
	}
	return e.doc(), true
}

// All iterates over the texts of all objects that exist when the iteration begins, by key. It unpacks one at a time.
func (x *Indexer) All() iter.Seq2[string, patch.Doc] {
	return func(yield func(string, patch.Doc) bool) {
		entries := x.store.all()
		slices.SortFunc(entries, byKey)
		for _, e := range entries {
			if !yield(e.key, e.doc()) {
				return
			}
		}
	}
}

// Index returns copies of the objects that have a value in common with obj. obj itself need not be in the store.
func (x *Indexer) Index(indexName string, obj any) ([]any, error) {
	of, err := x.store.built(indexName)
	if err != nil {
		return nil, err
	}
	values, err := of.valuesOfAny(obj, x.codec)
	if err != nil {
		return nil, err
	}
	return x.found(of, values...)
}

// ByIndex returns copies of the objects with a value.
func (x *Indexer) ByIndex(indexName, indexedValue string) ([]any, error) {
	of, err := x.store.built(indexName)
	if err != nil {
		return nil, err
	}
	return x.found(of, indexedValue)
}

func (x *Indexer) found(of *index, values ...string) ([]any, error) {
	entries := x.store.under(of, values...)
	objects := make([]any, len(entries))
	for i, e := range entries {
		var err error
		if objects[i], err = x.codec.decoded(e); err != nil {
			return nil, err
		}
	}
	return objects, nil
}

// IndexKeys returns the keys of the objects with a value, sorted.
func (x *Indexer) IndexKeys(indexName, indexedValue string) ([]string, error) {
	of, err := x.store.built(indexName)
	if err != nil {
		return nil, err
	}
	return x.store.keysUnder(of, indexedValue), nil
}

// ListIndexFuncValues returns all values of an index, in no order. It returns none if there is no such index, or if it
// cannot be built.
func (x *Indexer) ListIndexFuncValues(indexName string) []string {
	values, err := x.IndexValues(indexName)
	if err != nil {
		return []string{}
	}
	return values
}

// IndexValues is ListIndexFuncValues with an error.
func (x *Indexer) IndexValues(indexName string) ([]string, error) {
	of, err := x.store.built(indexName)
	if err != nil {
		return nil, err
	}
	return x.store.valuesOf(of), nil
}

// GetIndexers returns the index functions by name, in a new map.
func (x *Indexer) GetIndexers() cache.Indexers { return x.store.indexers() }

// AddIndexers adds indices. The error names the existing ones, or is an *IndexError. After an error no index is added.
func (x *Indexer) AddIndexers(newIndexers cache.Indexers) error {
	return x.store.addIndices(newIndexers, !x.lazy)
}
