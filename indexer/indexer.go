package indexer

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"

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
	keyFunc cache.KeyFunc
	decode  func(patch.Doc) (any, error)
	custom  bool // decode is not this package's own
	lazy    bool
	packer  packer

	// The goroutine that changes the store or builds an index holds writing, so that index functions can be called without
	// holding up readers. It is taken before mu.
	writing sync.Mutex
	mu      sync.RWMutex // protects the fields below; locked only by the holder of writing, and only to put in ready parts
	entries map[string]*entry
	indices map[string]*index
	rv      string
}

var (
	_ cache.Indexer          = (*Indexer)(nil)
	_ cache.TransactionStore = (*Indexer)(nil)
)

// New makes an empty Indexer. A nil keyFunc gives "namespace/name" and, for Delete and Get, takes tombstones as well. A keyFunc
// gets the object that the caller passed, and for a text its metadata (*metav1.PartialObjectMetadata).
func New(keyFunc cache.KeyFunc, indexers cache.Indexers, o Options) *Indexer {
	x := &Indexer{
		keyFunc: keyFunc, decode: o.Decode, custom: o.Decode != nil, lazy: o.Lazy,
		entries: make(map[string]*entry), indices: make(map[string]*index, len(indexers)),
	}
	if x.decode == nil {
		x.decode = decodeUnstructured
	}
	for name, of := range indexers {
		x.indices[name] = newIndex(name, of, !o.Lazy)
	}
	return x
}

// Add keeps an object, in place of any with its key. The error is a cache.KeyError, an *IndexError, or says why the object
// cannot be kept; the store is then as it was.
func (x *Indexer) Add(obj any) error {
	staged, err := x.stage(obj)
	return x.keep(staged, err)
}

// AddDoc keeps a text whose namespace, name and resource version the caller knows: nothing of it is read, unless an index or
// Options.Decode has to. With a keyFunc of its own, the Indexer asks that.
func (x *Indexer) AddDoc(namespace, name, rv string, doc patch.Doc) error {
	if x.keyFunc != nil {
		return x.Add(doc)
	}
	staged, err := x.stageDoc(joined(namespace, name), rv, doc)
	return x.keep(staged, err)
}

func (x *Indexer) keep(staged change, err error) error {
	if err != nil {
		return err
	}
	x.writing.Lock()
	defer x.writing.Unlock()
	if err := x.index(&staged); err != nil {
		return err
	}
	x.commit(staged.rv, staged)
	return nil
}

// Update is Add.
func (x *Indexer) Update(obj any) error { return x.Add(obj) }

// Delete removes the object with the key of obj, if there is one. The error is a cache.KeyError.
func (x *Indexer) Delete(obj any) error {
	staged, err := x.stageDelete(obj)
	if err != nil {
		return err
	}
	x.writing.Lock()
	defer x.writing.Unlock()
	x.commit(staged.rv, staged)
	return nil
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
			all[i], errs[i] = x.stage(txn.Object)
		case cache.TransactionTypeDelete:
			all[i], errs[i] = x.stageDelete(txn.Object)
		default:
			errs[i] = fmt.Errorf("unknown type %q of a transaction", txn.Type)
		}
	}
	x.writing.Lock()
	defer x.writing.Unlock()
	good := make([]change, 0, len(all))
	var rv *string
	for i := range all {
		if errs[i] == nil {
			errs[i] = x.index(&all[i])
		}
		if errs[i] != nil {
			failed.Errors = append(failed.Errors, errs[i])
			continue
		}
		failed.SuccessfulIndices = append(failed.SuccessfulIndices, i)
		good = append(good, all[i])
		rv = all[i].rv
	}
	x.commit(rv, good...)
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
		if staged[i], err = x.stage(obj); err != nil {
			return err
		}
	}
	x.writing.Lock()
	defer x.writing.Unlock()
	for i := range staged {
		if err := x.index(&staged[i]); err != nil {
			return err
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.entries = make(map[string]*entry, len(staged))
	for _, of := range x.indices {
		of.reset()
	}
	for i := range staged {
		x.put(&staged[i])
	}
	x.rv = resourceVersion
	return nil
}

// Resync does nothing, as in client-go.
func (x *Indexer) Resync() error { return nil }

// Bookmark sets the resource version that LastStoreSyncResourceVersion gives.
func (x *Indexer) Bookmark(rv string) {
	x.writing.Lock()
	defer x.writing.Unlock()
	x.commit(&rv)
}

// LastStoreSyncResourceVersion gives the resource version of the last object written, list or bookmark.
func (x *Indexer) LastStoreSyncResourceVersion() string {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.rv
}

// Len gives the number of objects.
func (x *Indexer) Len() int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return len(x.entries)
}

// List gives all objects, in no order, each a copy of its own. An object that Options.Decode took when it was added and no
// longer takes is left out: All and Doc give it.
func (x *Indexer) List() []any {
	x.mu.RLock()
	entries := slices.Collect(maps.Values(x.entries))
	x.mu.RUnlock()
	objects := make([]any, 0, len(entries))
	for _, e := range entries {
		if object, err := x.decoded(e); err == nil {
			objects = append(objects, object)
		}
	}
	return objects
}

// ListKeys gives the keys of all objects, in no order.
func (x *Indexer) ListKeys() []string {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return slices.AppendSeq(make([]string, 0, len(x.entries)), maps.Keys(x.entries))
}

// Get gives a copy of the object with the key of obj.
func (x *Indexer) Get(obj any) (item any, exists bool, err error) {
	key, _, err := x.identity(obj)
	if err != nil {
		return nil, false, err
	}
	return x.GetByKey(key)
}

// GetByKey gives a copy of the object with a key. The error is one of Options.Decode.
func (x *Indexer) GetByKey(key string) (item any, exists bool, err error) {
	e := x.entry(key)
	if e == nil {
		return nil, false, nil
	}
	item, err = x.decoded(e)
	return item, err == nil, err
}

// Doc gives the text of the object with a key.
func (x *Indexer) Doc(key string) (doc patch.Doc, exists bool) {
	e := x.entry(key)
	if e == nil {
		return nil, false
	}
	return e.doc(), true
}

// All gives the text of every object that is there when the iteration begins, by key. One at a time is unpacked.
func (x *Indexer) All() iter.Seq2[string, patch.Doc] {
	return func(yield func(string, patch.Doc) bool) {
		x.mu.RLock()
		entries := slices.Collect(maps.Values(x.entries))
		x.mu.RUnlock()
		slices.SortFunc(entries, byKey)
		for _, e := range entries {
			if !yield(e.key, e.doc()) {
				return
			}
		}
	}
}

func (x *Indexer) entry(key string) *entry {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.entries[key]
}

func (x *Indexer) decoded(e *entry) (any, error) {
	object, err := x.made(e)
	if err != nil {
		return nil, fmt.Errorf("decode %q: %w", e.key, err)
	}
	return object, nil
}

// made gives what Options.Decode makes of an entry. It may keep the text; Decode does not.
func (x *Indexer) made(e *entry) (any, error) {
	if x.custom {
		return x.decode(e.doc())
	}
	buffer := buffers.Get().(*[]byte)
	defer buffers.Put(buffer)
	*buffer = e.unpack((*buffer)[:cap(*buffer)])
	return x.decode(*buffer)
}

// A change is what is to be done to one key.
type change struct {
	key    string
	entry  *entry    // nil removes
	rv     *string   // nil leaves the store's as it is
	doc    patch.Doc // of entry, until it is indexed
	values map[*index][]string
}

// stage does all that can be done for a new object without the store.
func (x *Indexer) stage(obj any) (change, error) {
	doc, err := docOf(obj)
	if err != nil {
		return change{}, err
	}
	metadata, err := metadataOf(doc)
	if err != nil {
		return change{}, err
	}
	key, err := x.key(obj, doc, metadata)
	if err != nil {
		return change{}, err
	}
	return x.stageDoc(key, text(metadata, "/resourceVersion"), doc)
}

func (x *Indexer) stageDoc(key, rv string, doc patch.Doc) (change, error) {
	if x.custom {
		if _, err := x.decode(doc); err != nil {
			return change{}, fmt.Errorf("decode %q: %w", key, err)
		}
	}
	return change{key: key, entry: x.packer.pack(key, doc), rv: &rv, doc: doc}, nil
}

func (x *Indexer) stageDelete(obj any) (change, error) {
	key, rv, err := x.identity(obj)
	return change{key: key, rv: rv}, err
}

// index computes the values of a change in the indices that are built. The caller holds writing.
func (x *Indexer) index(c *change) error {
	if c.entry == nil {
		return nil
	}
	defer func() { c.doc = nil }()
	lazy := x.lazily(c.doc)
	for _, of := range x.indices {
		if !of.built {
			continue
		}
		values, err := of.valuesOf(c.key, c.doc, lazy)
		if err != nil {
			return err
		}
		if c.values == nil {
			c.values = make(map[*index][]string, len(x.indices))
		}
		c.values[of] = values
	}
	return nil
}

// lazily decodes a text at most once, for those index functions that want the object.
func (x *Indexer) lazily(doc patch.Doc) func() (any, error) {
	return sync.OnceValues(func() (any, error) { return x.decode(doc) })
}

// commit makes changes visible, all at once. The caller holds writing.
func (x *Indexer) commit(rv *string, changes ...change) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for i := range changes {
		x.put(&changes[i])
	}
	if rv != nil {
		x.rv = *rv
	}
}

func (x *Indexer) put(c *change) {
	if c.entry == nil {
		delete(x.entries, c.key)
	} else {
		x.entries[c.key] = c.entry
	}
	for _, of := range x.indices {
		if of.built {
			of.put(c.key, c.values[of])
		}
	}
}
