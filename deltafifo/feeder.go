package deltafifo

import (
	"cmp"
	"fmt"

	"k8s.io/client-go/tools/cache"

	"github.com/kuberewind/kuberewind/delta"
)

// feeder makes entries for one FIFO, and enqueues them.
type feeder struct {
	queue     *Queue
	stream    *stream
	keyOf     cache.KeyFunc
	transform cache.TransformFunc
	attach    func() any
	detach    func(any)

	number uint64 // in records of the spool

	// The queue's lock protects these fields.
	held    holdBack
	closed  bool
	syncing syncing
}

func newFeeder(q *Queue, o *FIFOOptions) *feeder {
	f := &feeder{queue: q, keyOf: o.KeyFunction, transform: o.Transformer, attach: o.Attach, detach: o.Detach}
	f.syncing = syncing{name: cmp.Or(o.Name, "deltafifo"), done: make(chan struct{})}
	if f.keyOf == nil {
		f.keyOf = cache.MetaNamespaceKeyFunc
	}
	if f.attach == nil {
		f.attach = func() any { return nil }
	}
	if f.detach == nil {
		f.detach = func(any) {}
	}
	return f
}

// prepare transforms an object and returns its key.
func (f *feeder) prepare(obj any) (string, any, error) {
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		return tombstone.Key, obj, nil
	}
	if f.transform != nil {
		var err error
		if obj, err = f.transform(obj); err != nil {
			return "", nil, fmt.Errorf("transform object: %w", err)
		}
	}
	key, err := f.keyOf(obj)
	if err != nil {
		// I9: cache.KeyError would print the object.
		return "", nil, fmt.Errorf("key of %T: %w", obj, err)
	}
	return key, obj, nil
}

// enqueue enqueues a delta.
func (f *feeder) enqueue(key string, t cache.DeltaType, source delta.Source, obj any, position string) error {
	return f.enqueueWith(f.attach(), key, Entry{
		Delta:    cache.Delta{Type: t, Object: obj},
		Source:   source,
		Position: position,
		Bytes:    bytesOf(obj),
	})
}

// mark enqueues a marker. If the marker does not move the position, the position is empty.
func (f *feeder) mark(m *delta.Marker, position string) error {
	return f.enqueueWith(f.attach(), "", Entry{Marker: m, Position: position, Bytes: entryBytes})
}

// enqueueWith enqueues an entry with a value of Attach.
func (f *feeder) enqueueWith(attached any, key string, e Entry) error {
	e.Attached = attached
	err := f.queue.enqueue(f, key, e)
	if err != nil && attached != nil {
		f.detach(attached)
	}
	return err
}

func (f *feeder) appendedLocked(n *node) {
	if n.entry.Delta.Type != "" {
		f.syncing.deltas++
	}
	if n.entry.Source == delta.SourceWatch {
		f.syncing.populate(0)
	}
}
