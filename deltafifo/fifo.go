package deltafifo

import (
	"k8s.io/client-go/tools/cache"

	"github.com/kuberewind/kuberewind/delta"
)

// FIFOOptions configures a FIFO. The zero value is usable.
type FIFOOptions struct {
	// Stream is the handle of the stream that its entries carry. It must be comparable. FIFOs with the same handle feed
	// the same stream. Default: the *FIFO.
	Stream any
	// Name is the name of HasSyncedChecker. Default: "deltafifo".
	Name string
	// KeyFunction returns the key of a transformed object. Default: cache.MetaNamespaceKeyFunc.
	KeyFunction cache.KeyFunc
	// KnownObjects are the committed objects, or for each a value with GetUID, GetResourceVersion and Digest. A value
	// may have a method Object() (any, error) that returns the object for a resync. Nil: no object is known.
	KnownObjects cache.KeyListerGetter
	// ResyncNeeded reports whether Resync makes a keyframe of a known value. Nil: of every value.
	ResyncNeeded func(known any) bool
	// Rules describe which objects the stream feeds, in any form. The markers of its lists carry them.
	Rules string
	// Attach returns a value that is recorded with the next entry, as Entry.Attached. If it is nil or returns nil, the
	// entry has none.
	Attach func() any
	// Detach takes back a value of Attach whose entry was not enqueued, because the FIFO was closed. If Detach is nil,
	// the value is dropped.
	Detach func(any)
	// Transformer is applied to every object from outside, but not to tombstones.
	Transformer cache.TransformFunc
}

// FIFO is the cache.Queue of one stream.
type FIFO struct {
	queue  *Queue
	stream *stream
	feeder *feeder
	tail   Tail
	needed func(known any) bool

	// The feed of the stream protects these fields.
	lists        lists
	events       events
	interruption interruption
}

var (
	_ cache.Queue                  = (*FIFO)(nil)
	_ cache.QueueWithBatch         = (*FIFO)(nil)
	_ cache.TransformingStore      = (*FIFO)(nil)
	_ cache.ReflectorBookmarkStore = (*FIFO)(nil)

	_ interface { // a reflector that lists page by page looks for these methods
		BeginReplace(cause delta.Cause, detail, fromResourceVersion string) error
		ReplacePage(list []interface{}, resourceVersion string) error
		EndReplace(resourceVersion string) error
		AbortReplace()
		Unreadable(key string) error
	} = (*FIFO)(nil)
	_ interface { // a reflector that reports interruptions looks for these methods
		Interrupted(cause delta.Cause, detail string) error
		Resumed() error
	} = (*FIFO)(nil)
)

// FIFO returns a FIFO that feeds q.
func (q *Queue) FIFO(o FIFOOptions) *FIFO {
	f := &FIFO{queue: q, feeder: newFeeder(q, &o), needed: o.ResyncNeeded}
	f.tail = Tail{feeder: f.feeder, known: o.KnownObjects}
	f.lists = lists{feeder: f.feeder, tail: &f.tail, rules: o.Rules}
	f.events = events{feeder: f.feeder, lists: &f.lists}
	if o.Stream == nil {
		o.Stream = f
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	f.stream = q.backlog.streams.open(o.Stream, &q.mu)
	f.feeder.stream = f.stream
	q.backlog.disk.records.number(f.feeder)
	return f
}

// Add enqueues an Added delta. It blocks until there is room.
func (f *FIFO) Add(obj interface{}) error { return f.events.observe(cache.Added, obj) }

// Update enqueues an Updated delta. It blocks until there is room.
func (f *FIFO) Update(obj interface{}) error { return f.events.observe(cache.Updated, obj) }

// Delete enqueues a Deleted delta, whether or not the object is known. It blocks until there is room.
func (f *FIFO) Delete(obj interface{}) error { return f.events.observe(cache.Deleted, obj) }

// Bookmark enqueues a move of the position. The server says that it has given everything up to there.
func (f *FIFO) Bookmark(resourceVersion string) error { return f.events.moveTo(resourceVersion, "") }

// Proved is a Bookmark that the server will not repeat: Next hands it out without waiting for more.
func (f *FIFO) Proved(resourceVersion string) error {
	if err := f.events.moveTo(resourceVersion, ""); err != nil {
		return err
	}
	f.queue.hurry()
	return nil
}

// Skip enqueues a move of the position past an event that the recorder excludes. Later events may have the same
// resource version. The entry has delta.SourceWatch and no delta.
func (f *FIFO) Skip(resourceVersion string) error {
	return f.events.moveTo(resourceVersion, delta.SourceWatch)
}

// Resync enqueues a Sync delta, a keyframe, for every known object that FIFOOptions.ResyncNeeded selects and of which
// nothing is held. It locks the feed for one object at a time, so that watch events may come in between. It blocks
// until there is room.
//
// If it cannot get an object, it stops with an error; the keyframes that it enqueued stay. If a part of the stream is
// on disk only, it returns ErrOnDisk at once.
func (f *FIFO) Resync() error { return f.tail.resync(f.needed) }

// Tail returns the state of the stream after all held entries are committed.
func (f *FIFO) Tail() *Tail { return &f.tail }

// Transformer returns the transformer of the options.
func (f *FIFO) Transformer() cache.TransformFunc { return f.feeder.transform }

// Close ends the feeding: calls that wait for room, and all later ones, fail with cache.ErrFIFOClosed. The held entries
// can still be drained. When none of the stream is left, Pop returns cache.ErrFIFOClosed.
func (f *FIFO) Close() {
	q := f.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	if f.feeder.closed {
		return
	}
	f.feeder.closed = true
	q.cancelLocked(func(other *feeder) bool { return other == f.feeder })
	f.tail.endListLocked()
	f.stream.arrival.Broadcast()
	f.stream.fifos--
	q.backlog.disk.records.forget(f.feeder)
	q.backlog.streams.forget(f.stream)
}

// HasSynced reports whether the deltas of the first list have left the queue. An Add, Update or Delete before any list
// counts as an empty list.
func (f *FIFO) HasSynced() bool {
	f.queue.mu.Lock()
	defer f.queue.mu.Unlock()
	return f.feeder.syncing.over
}

// HasSyncedChecker is done when HasSynced.
func (f *FIFO) HasSyncedChecker() cache.DoneChecker { return &f.feeder.syncing }
