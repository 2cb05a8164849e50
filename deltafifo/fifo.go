package deltafifo

import (
	"errors"
	"fmt"

	"k8s.io/client-go/tools/cache"

	"github.com/kuberewind/kuberewind/delta"
)

// FIFOOptions configures a FIFO. The zero value is usable.
type FIFOOptions struct {
	// Stream is the handle of the stream that its entries carry. It must be comparable. FIFOs with the same handle
	// feed the same stream. Default: the *FIFO.
	Stream any
	// Name is what Name returns. Default: "deltafifo".
	Name string
	// KeyFunction gives the key of an object, as transformed. Default: cache.MetaNamespaceKeyFunc.
	KeyFunction cache.KeyFunc
	// KnownObjects is what has been committed: the objects, or for each a value with GetUID, GetResourceVersion and
	// Digest. Values may have a method Object() (any, error) that gives the object for a resync. Nil: nothing is known.
	KnownObjects cache.KeyListerGetter
	// ResyncNeeded says of which known values Resync makes keyframes. Nil: of all.
	ResyncNeeded func(known any) bool
	// Rules say what of the stream is fed, in whatever words. They go with the markers of its lists.
	Rules string
	// Attach gives what is to be recorded with the next entry: it becomes Entry.Attached. Nil, or a function that returns nil: nothing.
	Attach func() any
	// Detach takes back what Attach gave for an entry that was not enqueued, because the FIFO was closed. Nil: it is dropped.
	Detach func(any)
	// Transformer is applied to every object that comes from outside, but not to tombstones.
	Transformer cache.TransformFunc
}

// FIFO is the cache.Queue of one stream.
type FIFO struct {
	queue     *Queue
	stream    *stream
	name      string
	keyOf     cache.KeyFunc
	known     cache.KeyListerGetter
	transform cache.TransformFunc
	needed    func(known any) bool
	attach    func() any
	detach    func(any)
	rules     string

	// Protected by the stream's feed.
	replacing    *replacement
	interruption interruption
	held         holdBack

	number uint64 // in records of the spool

	// Protected by the queue's lock.
	closed     bool
	usesTails  bool // on behalf of replacing
	deltas     int  // held
	populated  bool
	initial    int // of the first list: how many deltas are still held
	synced     chan struct{}
	syncedDone bool
}

var (
	_ cache.Queue                  = (*FIFO)(nil)
	_ cache.QueueWithBatch         = (*FIFO)(nil)
	_ cache.TransformingStore      = (*FIFO)(nil)
	_ cache.ReflectorBookmarkStore = (*FIFO)(nil)
	_ cache.DoneChecker            = (*FIFO)(nil)

	_ interface { // what a reflector that lists page by page looks for
		BeginReplace(cause delta.Cause, detail, fromResourceVersion string) error
		ReplacePage(list []interface{}, resourceVersion string) error
		EndReplace(resourceVersion string) error
		AbortReplace()
		Unread(key string) error
	} = (*FIFO)(nil)
	_ interface { // what a reflector that confesses interruptions looks for
		Interrupted(cause delta.Cause, detail string) error
		Resumed() error
	} = (*FIFO)(nil)
)

var errReplacing = errors.New("deltafifo: a list is being taken in: what came after it must wait for EndReplace or AbortReplace")

// FIFO returns a FIFO that feeds q.
func (q *Queue) FIFO(o FIFOOptions) *FIFO {
	f := &FIFO{queue: q, name: o.Name, keyOf: o.KeyFunction, known: o.KnownObjects, transform: o.Transformer, needed: o.ResyncNeeded, attach: o.Attach, detach: o.Detach, rules: o.Rules, synced: make(chan struct{})}
	if f.name == "" {
		f.name = "deltafifo"
	}
	if f.keyOf == nil {
		f.keyOf = cache.MetaNamespaceKeyFunc
	}
	if f.attach == nil {
		f.attach = func() any { return nil }
	}
	if f.detach == nil {
		f.detach = func(any) {}
	}
	if o.Stream == nil {
		o.Stream = f
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	f.stream = q.streamLocked(o.Stream)
	q.spill.number(f)
	return f
}

// Add enqueues an Added delta. It blocks until there is room.
func (f *FIFO) Add(obj interface{}) error { return f.observe(cache.Added, obj) }

// Update enqueues an Updated delta. It blocks until there is room.
func (f *FIFO) Update(obj interface{}) error { return f.observe(cache.Updated, obj) }

// Delete enqueues a Deleted delta, whether or not the object is known. It blocks until there is room.
func (f *FIFO) Delete(obj interface{}) error { return f.observe(cache.Deleted, obj) }

func (f *FIFO) observe(t cache.DeltaType, obj any) error {
	f.stream.feed.Lock()
	defer f.stream.feed.Unlock()
	if f.replacing != nil {
		return errReplacing
	}
	key, obj, err := f.prepare(obj)
	if err != nil {
		return err
	}
	return f.enqueue(key, t, delta.SourceWatch, obj, positionOf(obj))
}

// prepare transforms an object and gives its key.
func (f *FIFO) prepare(obj any) (string, any, error) {
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

func (f *FIFO) enqueue(key string, t cache.DeltaType, source delta.Source, obj any, position string) error {
	return f.enqueueWith(f.attach(), key, Entry{
		Delta:    cache.Delta{Type: t, Object: obj},
		Source:   source,
		Position: position,
		Bytes:    bytesOf(obj),
	})
}

// enqueueWith enqueues an entry with what Attach gave.
func (f *FIFO) enqueueWith(attached any, key string, e Entry) error {
	e.Attached = attached
	err := f.queue.enqueue(f, key, e)
	if err != nil && attached != nil {
		f.detach(attached)
	}
	return err
}

// Bookmark enqueues a move of the position, to where the server says that everything has been given.
func (f *FIFO) Bookmark(resourceVersion string) error { return f.moveTo(resourceVersion, "") }

// Proved is Bookmark for a position that nobody says again: Next hands it out without waiting for more.
func (f *FIFO) Proved(resourceVersion string) error {
	if err := f.moveTo(resourceVersion, ""); err != nil {
		return err
	}
	f.queue.hurry()
	return nil
}

// Pass enqueues a move of the position past an event that is not wanted. It says no more than that event did: others may
// have the same resource version. The entry has delta.SourceWatch and no delta.
func (f *FIFO) Pass(resourceVersion string) error {
	return f.moveTo(resourceVersion, delta.SourceWatch)
}

func (f *FIFO) moveTo(resourceVersion string, source delta.Source) error {
	f.stream.feed.Lock()
	defer f.stream.feed.Unlock()
	switch {
	case f.replacing != nil:
		return errReplacing
	case resourceVersion == "":
		return nil
	}
	attached := f.attach()
	if attached == nil && f.queue.coalesce(f, resourceVersion, source) {
		return nil
	}
	return f.enqueueWith(attached, "", Entry{Position: resourceVersion, Source: source, Bytes: entryBytes})
}

// Transformer returns the transformer of the options.
func (f *FIFO) Transformer() cache.TransformFunc { return f.transform }

// Close ends the feeding: calls that wait for room, and all later ones, fail with cache.ErrFIFOClosed. What is held
// can still be drained; when nothing is left of the stream, Pop returns cache.ErrFIFOClosed.
func (f *FIFO) Close() {
	q := f.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	if f.closed {
		return
	}
	f.closed = true
	q.dismissLocked(func(other *FIFO) bool { return other == f })
	f.releaseTailsLocked()
	f.stream.arrival.Broadcast()
	f.stream.fifos--
	delete(q.spill.fifos, f.number)
	q.forgetLocked(f.stream)
}

// HasSynced returns true once the deltas of the first list have left the queue. An Add, Update or Delete that comes
// before any list counts as an empty one.
func (f *FIFO) HasSynced() bool {
	f.queue.mu.Lock()
	defer f.queue.mu.Unlock()
	return f.syncedDone
}

// HasSyncedChecker is done when HasSynced.
func (f *FIFO) HasSyncedChecker() cache.DoneChecker { return f }

// Name is the name of the options.
func (f *FIFO) Name() string { return f.name }

// Done is closed when HasSynced.
func (f *FIFO) Done() <-chan struct{} { return f.synced }

func (f *FIFO) appendedLocked(n *node) {
	if n.entry.Delta.Type != "" {
		f.deltas++
	}
	if n.entry.Source == delta.SourceWatch && !f.populated {
		f.populatedLocked(0)
	}
}

func (f *FIFO) leftLocked(n *node) {
	if n.entry.Delta.Type == "" {
		return
	}
	f.deltas--
	if f.initial > 0 {
		f.initial--
		f.checkSyncedLocked()
	}
}

// populatedLocked notes that the first list is in, of which so many deltas are held.
func (f *FIFO) populatedLocked(initial int) {
	f.populated, f.initial = true, initial
	f.checkSyncedLocked()
}

func (f *FIFO) checkSyncedLocked() {
	if f.populated && f.initial == 0 && !f.syncedDone {
		f.syncedDone = true
		close(f.synced)
	}
}
