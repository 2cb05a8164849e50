package indexer

import (
	"fmt"
	"iter"
	"slices"

	"k8s.io/client-go/tools/cache"

	"github.com/kuberewind/kuberewind/patch"
)

// Options of an Indexer. The zero value is client-go's behaviour.
type Options struct {
	// Decode makes what Get, List and index functions give out of an object's text; nil means Decode, which makes an
	// *unstructured.Unstructured. It is tried on each object before it is kept. It is called from many goroutines.
	Decode func(patch.Doc) (any, error)
	// Lazy builds an index when it is first asked for, and not before.
	Lazy bool
}

// An Indexer is a cache.Indexer whose objects are kept compressed.
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

// New makes an empty Indexer. A nil keyFunc gives "namespace/name" and, for Delete and Get, takes tombstones as well. A keyFunc
// gets the object that the caller passed, and for a text its metadata (*metav1.PartialObjectMetadata).
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

// Add keeps an object, in place of any with its key. The error is a cache.KeyError, an *IndexError, or says why the object
// cannot be kept; the store is then as it was.
func (x *Indexer) Add(obj any) error {
	staged, err := x.stager.stage(obj)
	if err != nil {
		return err
	}
	return x.store.keep(&staged)
}

// AddDoc keeps a text whose namespace, name and resource version the caller knows: nothing of it is read, unless an index or
// Options.Decode has to. With a keyFunc of its own, the Indexer asks that.
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

// Transaction does several things at once: readers see all of them or none. An operation that fails is left out and
// reported.
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

// Replace puts a list in the place of everything. After an error the store is as it was.
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

// Bookmark sets the resource version that LastStoreSyncResourceVersion gives.
func (x *Indexer) Bookmark(rv string) { x.store.bookmark(rv) }

// LastStoreSyncResourceVersion gives the resource version of the last object written, list or bookmark.
func (x *Indexer) LastStoreSyncResourceVersion() string { return x.store.version() }

// Len gives the number of objects.
func (x *Indexer) Len() int { return x.store.len() }

// List gives all objects, in no order, each a copy of its own. An object that Options.Decode took when it was added and no
// longer takes is left out: All and Doc give it.
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

// ListKeys gives the keys of all objects, in no order.
func (x *Indexer) ListKeys() []string { return x.store.keys() }

// Get gives a copy of the object with the key of obj.
func (x *Indexer) Get(obj any) (item any, exists bool, err error) {
	key, _, err := x.stager.identity(obj)
	if err != nil {
		return nil, false, err
	}
	return x.GetByKey(key)
}

// GetByKey gives a copy of the object with a key. The error is one of Options.Decode.
func (x *Indexer) GetByKey(key string) (item any, exists bool, err error) {
	e := x.store.entry(key)
	if e == nil {
		return nil, false, nil
	}
	item, err = x.codec.decoded(e)
	return item, err == nil, err
}

// Doc gives the text of the object with a key.
func (x *Indexer) Doc(key string) (doc patch.Doc, exists bool) {
	e := x.store.entry(key)
	if e == nil {
		return nil, false
	}
	return e.doc(), true
}

// All gives the text of every object that is there when the iteration begins, by key. One at a time is unpacked.
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

// Index gives copies of the objects that have a value in common with obj. obj itself need not be in the store.
func (x *Indexer) Index(indexName string, obj any) ([]any, error) {
	of, err := x.store.built(indexName)
	if err != nil {
		return nil, err
	}
	values, err := of.asked(obj, x.codec)
	if err != nil {
		return nil, err
	}
	return x.found(of, values...)
}

// ByIndex gives copies of the objects with a value.
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

// IndexKeys gives the keys of the objects with a value, sorted.
func (x *Indexer) IndexKeys(indexName, indexedValue string) ([]string, error) {
	of, err := x.store.built(indexName)
	if err != nil {
		return nil, err
	}
	return x.store.keysUnder(of, indexedValue), nil
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
	of, err := x.store.built(indexName)
	if err != nil {
		return nil, err
	}
	return x.store.valuesOf(of), nil
}

// GetIndexers gives the index functions by name, in a map of its own.
func (x *Indexer) GetIndexers() cache.Indexers { return x.store.indexers() }

// AddIndexers adds indices. The error names the existing ones, or is an *IndexError; then none is added.
func (x *Indexer) AddIndexers(newIndexers cache.Indexers) error {
	return x.store.addIndices(newIndexers, !x.lazy)
}
