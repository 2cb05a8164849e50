package cache

import (
	"os"
	"sync"
	"testing"

	upstream "k8s.io/client-go/tools/cache"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/deltafifo"
)

// translated gives what a list showed as Replaced, as client-go's queues do, instead of as Sync with a source beside it.
var translated = os.Getenv("UPSTREAM_TRANSLATED") == "1"

// ours is a FIFO of kuberewind with what the tests look into.
type ours struct {
	*deltafifo.FIFO
	queue    *deltafifo.Queue
	keyFunc  KeyFunc
	replaced bool
	lock     sync.RWMutex // locked by helpers of the tests; protects nothing here
}

func newOurs(name string, key KeyFunc, known KeyListerGetter, transformer TransformFunc, replaced bool) *ours {
	q := deltafifo.New(deltafifo.Options{})
	o := &ours{queue: q, keyFunc: key, replaced: replaced}
	if o.keyFunc == nil {
		o.keyFunc = upstream.MetaNamespaceKeyFunc
	}
	o.FIFO = q.FIFO(deltafifo.FIFOOptions{Name: name, KeyFunction: o.keyFunc, KnownObjects: known, Transformer: transformer})
	return o
}

func (o *ours) retype(d Delta, s delta.Source) Delta {
	if translated && o.replaced && d.Type == Sync && s != delta.SourceResync {
		d.Type = Replaced
	}
	return d
}

func (o *ours) getItems() []Delta {
	deltas, sources := o.UpstreamHeld()
	items := make([]Delta, len(deltas))
	for i := range deltas {
		items[i] = o.retype(deltas[i], sources[i])
	}
	return items
}

func (o *ours) heldByKey() map[string]Deltas {
	held := map[string]Deltas{}
	for _, d := range o.getItems() {
		key, err := o.keyOf(d.Object)
		if err != nil {
			panic(err)
		}
		held[key] = append(held[key], d)
	}
	return held
}

// keyOf is client-go's, for the tests to say what they expect.
func (o *ours) keyOf(obj interface{}) (string, error) {
	if d, ok := obj.(Deltas); ok {
		if len(d) == 0 {
			return "", KeyError{Obj: obj, Err: ErrZeroLengthDeltasObject}
		}
		obj = d.Newest().Object
	}
	if d, ok := obj.(Delta); ok {
		obj = d.Object
	}
	if d, ok := obj.(DeletedFinalStateUnknown); ok {
		return d.Key, nil
	}
	return o.keyFunc(obj)
}

func (o *ours) Pop(process PopProcessFunc) (interface{}, error) {
	var given any
	_, err := o.FIFO.Pop(func(obj interface{}, initial bool) error {
		_, sources := o.UpstreamHeld() // the popped one is the first until process returns
		d := obj.(Deltas)
		given = Deltas{o.retype(d[0], sources[0])}
		return process(given, initial)
	})
	return given, err
}

func (o *ours) PopBatch(batch ProcessBatchFunc, single PopProcessFunc) error {
	return o.FIFO.PopBatch(func(deltas []Delta, initial bool) error {
		_, sources := o.UpstreamHeld()
		given := make([]Delta, len(deltas))
		for i := range deltas {
			given[i] = o.retype(deltas[i], sources[i])
		}
		return batch(given, initial)
	}, func(obj interface{}, initial bool) error {
		_, sources := o.UpstreamHeld()
		return single(Deltas{o.retype(obj.(Deltas)[0], sources[0])}, initial)
	})
}

// RealFIFO.

type RealFIFO struct {
	*ours
	emitAtomicEvents, emitDeltaTypeBookmark bool // not to be had
}

func NewRealFIFO(keyFunc KeyFunc, known KeyListerGetter, transformer TransformFunc) *RealFIFO {
	return &RealFIFO{ours: newOurs("RealFIFO", keyFunc, known, transformer, true)}
}

func (f *RealFIFO) setBatchSize(t *testing.T, n int) {
	if n < 1000 {
		t.Skip("the size of a batch is not to be had from outside")
	}
}

// DeltaFIFO.

type DeltaFIFO struct {
	*ours
	emitDeltaTypeReplaced bool
}

type DeltaFIFOOptions struct {
	KeyFunction           KeyFunc
	KnownObjects          KeyListerGetter
	EmitDeltaTypeReplaced bool
	Transformer           TransformFunc
}

func NewDeltaFIFOWithOptions(o DeltaFIFOOptions) *DeltaFIFO {
	return &DeltaFIFO{ours: newOurs("DeltaFIFO", o.KeyFunction, o.KnownObjects, o.Transformer, o.EmitDeltaTypeReplaced)}
}

func (f *DeltaFIFO) Replace(list []interface{}, rv string) error {
	f.replaced = f.replaced || f.emitDeltaTypeReplaced
	return f.ours.Replace(list, rv)
}

func (f *DeltaFIFO) KeyOf(obj interface{}) (string, error) { return f.keyOf(obj) }

func (f *DeltaFIFO) list() []interface{} {
	var list []interface{}
	for _, d := range f.heldByKey() {
		list = append(list, d.Newest().Object)
	}
	return list
}

func (f *DeltaFIFO) listKeys() []string {
	var keys []string
	for key := range f.heldByKey() {
		keys = append(keys, key)
	}
	return keys
}

func (f *DeltaFIFO) get(obj interface{}) (item interface{}, exists bool, err error) {
	key, err := f.KeyOf(obj)
	if err != nil {
		return nil, false, err
	}
	d, exists := f.heldByKey()[key]
	return d, exists, nil
}

// FIFO: the same, with the objects instead of their deltas.

type FIFO struct{ *ours }

func NewFIFO(key KeyFunc) *FIFO { return &FIFO{ours: newOurs("FIFO", key, nil, nil, false)} }

func (f *FIFO) Pop(process PopProcessFunc) (interface{}, error) {
	var given any
	_, err := f.ours.Pop(func(obj interface{}, initial bool) error {
		given = obj.(Deltas).Newest().Object
		return process(given, initial)
	})
	return given, err
}

func (f *FIFO) List() []interface{} {
	var list []interface{}
	for _, d := range f.heldByKey() {
		list = append(list, d.Newest().Object)
	}
	return list
}

func (f *FIFO) Get(obj interface{}) (item interface{}, exists bool, err error) {
	key, err := f.keyOf(obj)
	if err != nil {
		return nil, false, err
	}
	d, exists := f.heldByKey()[key]
	if !exists {
		return nil, false, nil
	}
	return d.Newest().Object, true, nil
}

func (f *FIFO) ListKeys() []string {
	var keys []string
	for key := range f.heldByKey() {
		keys = append(keys, key)
	}
	return keys
}

func (f *FIFO) GetByKey(key string) (item interface{}, exists bool, err error) {
	d, exists := f.heldByKey()[key]
	if !exists {
		return nil, false, nil
	}
	return d.Newest().Object, true, nil
}

func (f *FIFO) LastStoreSyncResourceVersion() string { return "" }
