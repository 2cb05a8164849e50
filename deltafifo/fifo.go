package deltafifo

import (
	"k8s.io/client-go/tools/cache"

	"github.com/kuberewind/kuberewind/delta"
)

// FIFOOptions configures a FIFO. The zero value is usable.
type FIFOOptions struct {
	// Stream is the handle of the stream that its entries carry. It must be comparable. FIFOs with the same handle
	// feed the same stream. Default: the *FIFO.
	Stream any
	// Name is the name of HasSyncedChecker. Default: "deltafifo".
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
	queue  *Queue
	stream *stream
	feeder *feeder
	tail   Tail
	needed func(known any) bool

	// Protected by the stream's feed.
	lists        lists
	events       events
	interruption interruption
}

var (
	_ cache.Queue                  = (*FIFO)(nil)
	_ cache.QueueWithBatch         = (*FIFO)(nil)
	_ cache.TransformingStore      = (*FIFO)(nil)
	_ cache.ReflectorBookmarkStore = (*FIFO)(nil)

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

// Bookmark enqueues a move of the position, to where the server says that everything has been given.
func (f *FIFO) Bookmark(resourceVersion string) error { return f.events.moveTo(resourceVersion, "") }

// Proved is Bookmark for a position that nobody says again: Next hands it out without waiting for more.
func (f *FIFO) Proved(resourceVersion string) error {
	if err := f.events.moveTo(resourceVersion, ""); err != nil {
		return err
	}
	f.queue.hurry()
	return nil
}

// Pass enqueues a move of the position past an event that is not wanted. It says no more than that event did: others may
// have the same resource version. The entry has delta.SourceWatch and no delta.
func (f *FIFO) Pass(resourceVersion string) error {
	return f.events.moveTo(resourceVersion, delta.SourceWatch)
}

// Resync enqueues a Sync delta, a keyframe, for every known object of which nothing is held, and that FIFOOptions.ResyncNeeded does
// not leave out. Watch events may come in
// between: it takes its turn with them object by object. It blocks until there is room. At the first object that cannot
// be had it stops with an error; the keyframes before it stay. It is ErrOnDisk, before anything, where a part of the stream is on disk only.
func (f *FIFO) Resync() error { return f.tail.resync(f.needed) }

// Tail is the state of the stream once all that is held is committed.
func (f *FIFO) Tail() *Tail { return &f.tail }

// Transformer returns the transformer of the options.
func (f *FIFO) Transformer() cache.TransformFunc { return f.feeder.transform }

// Close ends the feeding: calls that wait for room, and all later ones, fail with cache.ErrFIFOClosed. What is held
// can still be drained; when nothing is left of the stream, Pop returns cache.ErrFIFOClosed.
func (f *FIFO) Close() {
	q := f.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	if f.feeder.closed {
		return
	}
	f.feeder.closed = true
	q.dismissLocked(func(other *feeder) bool { return other == f.feeder })
	f.tail.endListLocked()
	f.stream.arrival.Broadcast()
	f.stream.fifos--
	q.backlog.disk.records.forget(f.feeder)
	q.backlog.streams.forget(f.stream)
}

// HasSynced returns true once the deltas of the first list have left the queue. An Add, Update or Delete that comes
// before any list counts as an empty one.
func (f *FIFO) HasSynced() bool {
	f.queue.mu.Lock()
	defer f.queue.mu.Unlock()
	return f.feeder.syncing.over
}

// HasSyncedChecker is done when HasSynced.
func (f *FIFO) HasSyncedChecker() cache.DoneChecker { return &f.feeder.syncing }
