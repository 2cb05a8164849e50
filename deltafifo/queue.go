package deltafifo

import (
	"errors"
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/kuberewind/kuberewind/delta"
)

// The defaults of Options.
const (
	DefaultMaxBytes       = 256 << 20
	DefaultBookmarkLinger = 5 * time.Second
	// If the process dies, the entries that waited in memory only are lost. A server that keeps history for a minute
	// can still serve them again.
	DefaultSpillAfter = 30 * time.Second
)

// Options configures a Queue. The zero value is usable.
type Options struct {
	// MaxBytes bounds what is held, from enqueuing to Done. Default: DefaultMaxBytes.
	MaxBytes int64
	// BookmarkLinger is how long Next delays bookmarks, so that they are committed together with a delta. If Next's
	// linger is longer, that counts. Default: DefaultBookmarkLinger.
	BookmarkLinger time.Duration
	// Now stamps the entries. It may stand still or jump: the queue measures durations with the runtime's clock.
	// Default: time.Now.
	Now func() time.Time

	// Spool takes entries that do not fit into MaxBytes, as records that Codec makes. If it is nil, such entries wait.
	// A queue with a spool is drained by Next, and each transaction writes its Offset.
	Spool Spool
	Codec Codec
	// Left describes the entries that an earlier process left in the spool, by stream. They come first.
	Left map[any]Spooled
	// SpillAfter is how long an entry may wait in memory only. After that, SpillOverdue writes all held entries to the
	// spool. Default: DefaultSpillAfter.
	SpillAfter time.Duration
	// OnSpill is called when the queue begins or stops spilling. It is also called when the queue cannot spill, and
	// when it can again or need not. The queue's lock is held.
	OnSpill func(SpillEvent)
}

// Queue is the ordered, bounded queue of one cluster.
type Queue struct {
	bookmarkLinger time.Duration

	turn chan struct{} // holds a token while a Next runs

	// mu protects everything below, and the fields of streams and FIFOs that say so. Only Options.Now, Spool, Codec and
	// OnSpill run under it; no other foreign code does.
	mu      sync.Mutex
	backlog backlog
	waiters waiters
	sleeper *sleeper
	drained drainage
	closed  bool
}

// drainage is how a queue is drained.
type drainage int

const (
	drainUndecided drainage = iota
	drainByNext
	drainByPop
)

var errDrainedBothWays = errors.New("deltafifo: a queue is drained either by Next or by Pop, not by both")

// New returns an empty queue.
func New(o Options) *Queue {
	if o.MaxBytes <= 0 {
		o.MaxBytes = DefaultMaxBytes
	}
	if o.BookmarkLinger <= 0 {
		o.BookmarkLinger = DefaultBookmarkLinger
	}
	if o.SpillAfter <= 0 {
		o.SpillAfter = DefaultSpillAfter
	}
	q := &Queue{
		bookmarkLinger: o.BookmarkLinger,
		turn:           make(chan struct{}, 1),
		sleeper:        newSleeper(),
	}
	q.backlog = backlog{memory: memory{maxBytes: o.MaxBytes}, streams: streams{}, clock: clock{now: o.Now}, next: q.sleeper}
	if o.Spool != nil {
		q.drained = drainByNext
		q.backlog.disk = newSpill(&o)
		q.backlog.resume(o.Left, &q.mu)
	}
	return q
}

// Close ends the feeding of all FIFOs: calls that wait for room, and all later ones, fail with cache.ErrFIFOClosed. The
// held entries can still be drained. When none is left, Next and Pop return cache.ErrFIFOClosed.
func (q *Queue) Close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.cancelLocked(func(*feeder) bool { return true })
	q.sleeper.rouse()
	for _, st := range q.backlog.streams {
		st.arrival.Broadcast()
	}
}

// enqueue puts e at the tail. It waits for room, after the calls that wait already, until f or q is closed.
func (q *Queue) enqueue(f *feeder, key string, e Entry) error {
	q.mu.Lock()
	if q.closed || f.closed {
		q.mu.Unlock()
		return cache.ErrFIFOClosed
	}
	n := q.backlog.arrive(f, key, e)
	if q.waiters.empty() && q.backlog.accept(n) {
		q.mu.Unlock()
		return nil
	}
	since := n.since
	admitted := q.waiters.wait(n)
	// The queue is full, so a lingering Next would wait in vain.
	q.sleeper.rouse()
	if q.backlog.disk.inUse() {
		q.admitLocked() // The disk may have room again.
	}
	q.mu.Unlock()
	err := <-admitted
	q.mu.Lock()
	f.held.add(since, time.Now())
	q.mu.Unlock()
	return err
}

// admitLocked accepts entries of waiting calls, as far as they fit.
func (q *Queue) admitLocked() {
	if !q.waiters.empty() {
		q.waiters.admit(q.backlog.accept)
	}
}

// cancelLocked cancels the waiting calls whose FIFO is closed. The entries of other calls may fit now.
func (q *Queue) cancelLocked(closed func(*feeder) bool) {
	if !q.waiters.empty() {
		q.waiters.cancel(closed, q.backlog.memory.nodes.put)
		q.admitLocked()
	}
}

// coalesce replaces the last entry of the stream by a newer bookmark, if that entry is a bookmark and not handed out.
// The bookmark moves to the tail of the queue, so that its time is true and times still do not decrease. While calls
// wait for room it stays in its place, because their times are older.
func (q *Queue) coalesce(f *feeder, position string, source delta.Source) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := f.stream.last
	if q.closed || f.closed || q.backlog.disk.on || n == nil || n.handed || n.copied || !n.entry.Bookmark() || n.entry.Source != source {
		return false
	}
	n.entry.Position = position
	n.entry.Move(&f.stream.position)
	if q.waiters.empty() {
		q.backlog.memory.moveToTail(n)
		n.entry.Observed = q.backlog.clock.stamp(time.Now())
		f.stream.positionedAt = n.entry.Observed
	}
	return true
}

// SpillOverdue writes all held entries to the spool if the oldest has waited for Options.SpillAfter. The owner of a
// queue with a spool calls it regularly, because nothing else looks at the time.
func (q *Queue) SpillOverdue() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.backlog.spillOverdue()
}

// Offset returns the number of the first entry after the n oldest ones. The numbers of entries rise by one and are the
// indices of their records. Before Done(n), the consumer commits that number together with the entries. A process that
// finds the spool after a crash releases the records before that number (I7).
func (q *Queue) Offset(n int) (next uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.backlog.disk.done + uint64(n)
}

// drainByLocked fixes how the queue is drained, at the first call.
func (q *Queue) drainByLocked(way drainage) error {
	if q.drained == drainUndecided {
		q.drained = way
	}
	if q.drained != way {
		return errDrainedBothWays
	}
	return nil
}

// Stats is a queue's state, for metrics.
type Stats struct {
	Entries  int   // held
	Bytes    int64 // held
	MaxBytes int64
	// HandedOut is the number of entries that the consumer has.
	HandedOut int
	// OldestAge is how long the oldest entry has been held; zero for an empty queue.
	OldestAge time.Duration
	// Waiting is the number of calls that wait for room. Blocked is how long at least one call waited, in total.
	Waiting int
	Blocked time.Duration
	// Spooled is the number of entries on disk. Some of them are in memory as well. SpoolBytes is their size on disk.
	// SpoolAge is how long the oldest has been held. Spilling says that new entries go to disk.
	Spooled    int
	SpoolBytes int64
	SpoolAge   time.Duration
	Spilling   bool
}

// Stats returns the queue's state.
func (q *Queue) Stats() Stats {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	held, disk := &q.backlog.memory, &q.backlog.disk
	s := Stats{
		Entries:   held.all.entries,
		Bytes:     held.all.bytes,
		MaxBytes:  held.maxBytes,
		HandedOut: held.all.entries - held.fresh.entries,
		Waiting:   len(q.waiters.list),
		Blocked:   q.waiters.blockedFor(now),
	}
	if head := held.nodes.head; head != nil {
		s.OldestAge = now.Sub(head.since)
	}
	if disk.inUse() {
		s.Spooled, s.SpoolBytes, s.Spilling = disk.copied+disk.behind, disk.records.spool.Bytes(), disk.on
	}
	if s.Spooled > 0 {
		s.SpoolAge = s.OldestAge
	}
	return s
}
