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
	// A server that keeps history for a minute can still give again what waits in memory only when the process dies.
	DefaultSpillAfter = 30 * time.Second
)

// Options configures a Queue. The zero value is usable.
type Options struct {
	// MaxBytes bounds what is held, from enqueuing to Done. Default: DefaultMaxBytes.
	MaxBytes int64
	// BookmarkLinger is for how long Next lets bookmarks wait for a delta to be committed with. It has no effect where it
	// is shorter than the linger of Next. Default: DefaultBookmarkLinger.
	BookmarkLinger time.Duration
	// Now stamps the entries. It may stand still or jump: for how long something takes is told by the runtime's clock. Default: time.Now.
	Now func() time.Time

	// Spool takes what does not fit into MaxBytes, as records that Codec makes; nil: what does not fit waits. Such a queue is drained by Next,
	// and each transaction writes its Offset.
	Spool Spool
	Codec Codec
	// Left says of which streams the spool holds entries from a process before. They come first.
	Left map[any]Spooled
	// SpillAfter is for how long an entry may wait in memory only. Then SpillOverdue writes all that is held to the spool,
	// too. Default: DefaultSpillAfter.
	SpillAfter time.Duration
	// OnSpill is called when the queue begins or ends to spill, when it cannot, and when it can again or need not. It is
	// called under the queue's lock.
	OnSpill func(SpillEvent)
}

// Queue is the ordered, bounded queue of one cluster.
type Queue struct {
	bookmarkLinger time.Duration

	turn chan struct{} // holds a token while a Next runs

	// mu protects everything below, and the fields of streams and FIFOs that say so. No foreign code runs under it
	// but Options.Now, and what Options.Spool, Codec and OnSpill are.
	mu      sync.Mutex
	backlog backlog
	line    line
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

// Close ends the feeding of all FIFOs: calls that wait for room, and all later ones, fail with cache.ErrFIFOClosed.
// What is held can still be drained; when nothing is left to hand out, Next and Pop return cache.ErrFIFOClosed.
func (q *Queue) Close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.dismissLocked(func(*feeder) bool { return true })
	q.sleeper.rouse()
	for _, st := range q.backlog.streams {
		st.arrival.Broadcast()
	}
}

// enqueue puts e at the tail. It waits for room, behind those that wait already, until f or q is closed.
func (q *Queue) enqueue(f *feeder, key string, e Entry) error {
	q.mu.Lock()
	if q.closed || f.closed {
		q.mu.Unlock()
		return cache.ErrFIFOClosed
	}
	n := q.backlog.arrive(f, key, e)
	if q.line.empty() && q.backlog.accept(n) {
		q.mu.Unlock()
		return nil
	}
	since := n.since
	admitted := q.line.stand(n)
	// A full queue cannot give a lingering Next more than it has.
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

// admitLocked lets in those who wait, as far as they fit.
func (q *Queue) admitLocked() {
	if !q.line.empty() {
		q.line.admit(q.backlog.accept)
	}
}

// dismissLocked sends those away whose FIFO is closed. Others may fit now.
func (q *Queue) dismissLocked(closed func(*feeder) bool) {
	if !q.line.empty() {
		q.line.dismiss(closed, q.backlog.memory.nodes.put)
		q.admitLocked()
	}
}

// coalesce replaces the last entry of the stream by the newer bookmark, if that entry is a bookmark that waits to be handed
// out. The bookmark moves to the tail of the queue, so that its time is true and times still do not decrease. While calls wait
// in line it stays in its place, because their times are older.
func (q *Queue) coalesce(f *feeder, position string, source delta.Source) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := f.stream.last
	if q.closed || f.closed || q.backlog.disk.on || n == nil || n.handed || n.copied || !n.entry.Bookmark() || n.entry.Source != source {
		return false
	}
	n.entry.Position = position
	n.entry.Move(&f.stream.position)
	if q.line.empty() {
		q.backlog.memory.moveToTail(n)
		n.entry.Observed = q.backlog.clock.stamp(time.Now())
		f.stream.positionedAt = n.entry.Observed
	}
	return true
}

// SpillOverdue writes all that is held to the spool if the oldest of it has waited for Options.SpillAfter. The owner of a
// queue with a spool calls it every now and then, because nothing else looks at the time.
func (q *Queue) SpillOverdue() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.backlog.spillOverdue()
}

// Offset is the number of the first entry behind the n oldest ones. The numbers of entries rise by one and are the indices of
// their records. Before Done(n), the consumer writes that number where it commits the entries. A process that finds the spool
// after a crash releases what comes before it (I7).
func (q *Queue) Offset(n int) (next uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.backlog.disk.done + uint64(n)
}

// drainByLocked settles in which way the queue is drained.
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
	// HandedOut of the entries are with the consumer.
	HandedOut int
	// OldestAge is for how long the oldest entry has been held; zero for an empty queue.
	OldestAge time.Duration
	// Waiting calls are blocked for want of room. Blocked is for how long, in all, at least one was.
	Waiting int
	Blocked time.Duration
	// Spooled entries are on disk, and some of them in memory as well. SpoolBytes is what they take there. SpoolAge is for how
	// long the oldest has been held. Spilling says that new entries go there.
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
		Waiting:   len(q.line.waiters),
		Blocked:   q.line.blockedFor(now),
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
