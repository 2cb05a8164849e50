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
	maxBytes       int64
	bookmarkLinger time.Duration
	now            func() time.Time // nil: the runtime's clock

	turn chan struct{} // holds a token while a Next runs
	wake chan struct{} // tells the sleeping Next to look again

	// mu protects everything below, and the fields of streams and FIFOs that say so. No foreign code runs under it
	// but Options.Now, and what Options.Spool, Codec and OnSpill are.
	mu      sync.Mutex
	held    nodes
	all     tally // what is held
	fresh   tally // of it, what is not handed out
	cursor  *node // the first node to be handed out
	handed  int   // by Next, and neither done nor requeued
	stamped time.Time
	streams map[any]*stream
	line    line
	sleeper sleeper
	hurried bool // until Next has handed out all that waited when a position was proved
	drained drainage
	closed  bool
	spill   spill
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
		maxBytes:       o.MaxBytes,
		bookmarkLinger: o.BookmarkLinger,
		now:            o.Now,
		turn:           make(chan struct{}, 1),
		wake:           make(chan struct{}, 1),
		streams:        map[any]*stream{},
	}
	if o.Spool != nil {
		q.drained = drainByNext
		q.spill.begin(&o)
		q.resumeSpool(o.Left)
	}
	return q
}

// Close ends the feeding of all FIFOs: calls that wait for room, and all later ones, fail with cache.ErrFIFOClosed.
// What is held can still be drained; when nothing is left to hand out, Next and Pop return cache.ErrFIFOClosed.
func (q *Queue) Close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.dismissLocked(func(*FIFO) bool { return true })
	q.wakeLocked()
	for _, st := range q.streams {
		st.arrival.Broadcast()
	}
}

// enqueue puts e at the tail. It waits for room, behind those that wait already, until f or q is closed.
func (q *Queue) enqueue(f *FIFO, key string, e Entry) error {
	q.mu.Lock()
	if q.closed || f.closed {
		q.mu.Unlock()
		return cache.ErrFIFOClosed
	}
	n := q.held.get()
	n.entry, n.key, n.fifo, n.stream = e, key, f, f.stream
	n.entry.Stream = f.stream.handle
	n.since = time.Now()
	n.entry.Observed = q.stampLocked(n.since)
	if q.line.empty() && q.acceptLocked(n) {
		q.mu.Unlock()
		return nil
	}
	since := n.since
	admitted := q.standInLineLocked(n)
	if q.spill.spool != nil {
		q.admitLocked() // The disk may have room again.
	}
	q.mu.Unlock()
	err := <-admitted
	q.mu.Lock()
	f.held.add(since, time.Now())
	q.mu.Unlock()
	return err
}

// coalesce replaces the last entry of the stream by the newer bookmark, if that entry is a bookmark that waits to be handed
// out. The bookmark moves to the tail of the queue, so that its time is true and times still do not decrease. While calls wait
// in line it stays in its place, because their times are older.
func (q *Queue) coalesce(f *FIFO, position string, source delta.Source) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := f.stream.last
	if q.closed || f.closed || q.spill.on || n == nil || n.handed || n.copied || !n.entry.Bookmark() || n.entry.Source != source {
		return false
	}
	n.entry.Position = position
	n.entry.Move(&f.stream.position)
	if q.line.empty() {
		q.moveToTailLocked(n)
		n.entry.Observed = q.stampLocked(time.Now())
		f.stream.positionedAt = n.entry.Observed
	}
	return true
}

func (q *Queue) moveToTailLocked(n *node) {
	if q.cursor == n {
		q.cursor = n.after
	}
	q.held.unlink(n)
	q.held.append(n)
	if q.cursor == nil {
		q.cursor = n
	}
}

// stampLocked gives the time for an entry that arrives now, by the runtime's clock.
func (q *Queue) stampLocked(now time.Time) time.Time {
	if q.now != nil {
		now = q.now()
	}
	if now.After(q.stamped) {
		q.stamped = now
	}
	return q.stamped
}

// fitsLocked tells whether n may be let in: within the bound, or alone.
func (q *Queue) fitsLocked(n *node) bool {
	return q.all.entries == 0 || q.all.bytes+int64(n.entry.Bytes) <= q.maxBytes
}

func (q *Queue) appendLocked(n *node) {
	q.linkLocked(n)
	n.fifo.appendedLocked(n)
	n.stream.moveLocked(n)
	n.stream.linkLocked(n)
	q.stirLocked(n)
}

func (q *Queue) linkLocked(n *node) {
	q.held.append(n)
	q.all.add(n)
	q.fresh.add(n)
	if q.cursor == nil {
		q.cursor = n
	}
}

// leaveLocked lets go of the oldest node of its stream. The caller then lets in those who wait: admitLocked.
// I1: only Done, and Pop after its process function succeeded, come here.
func (q *Queue) leaveLocked(n *node) {
	if q.cursor == n {
		q.cursor = n.after
	}
	if !n.handed {
		q.fresh.sub(n)
	}
	q.all.sub(n)
	q.held.unlink(n)
	n.stream.leaveLocked(n)
	if n.fifo != nil {
		n.fifo.leftLocked(n)
	}
	q.forgetLocked(n.stream)
	q.held.put(n)
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
	s := Stats{
		Entries:   q.all.entries,
		Bytes:     q.all.bytes,
		MaxBytes:  q.maxBytes,
		HandedOut: q.all.entries - q.fresh.entries,
		Waiting:   len(q.line.waiters),
		Blocked:   q.line.blockedFor(now),
	}
	if q.held.head != nil {
		s.OldestAge = now.Sub(q.held.head.since)
	}
	if q.spill.spool != nil {
		s.Spooled, s.SpoolBytes, s.Spilling = q.spill.copied+q.spill.behind, q.spill.spool.Bytes(), q.spill.on
	}
	if s.Spooled > 0 {
		s.SpoolAge = s.OldestAge
	}
	return s
}
