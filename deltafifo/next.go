package deltafifo

import (
	"context"
	"fmt"
	"math"
	"time"

	"k8s.io/client-go/tools/cache"
)

// sleeper is what a Next that sleeps waits for.
type sleeper struct {
	asleep  bool
	entries int
	bytes   int64
	delta   bool // the first entry that is not a bookmark
}

// limits of one batch.
type limits struct {
	entries int
	bytes   int64
	linger  time.Duration
}

// Next hands out the oldest entries that are not handed out yet: at most maxItems and at most maxBytes, but at least one. Zero
// or less means no limit. Next waits for an entry, and then for more until the oldest is linger old. It waits longer if there
// are only bookmarks (Options.BookmarkLinger). It stops waiting when a limit is reached, a stream waits for room, a position
// was proved, or the queue is closed.
//
// The entries stay in the queue, and count, until Done. If ctx ends, Next returns its cause. If the queue is closed and
// nothing is left to hand out, it returns cache.ErrFIFOClosed. With an error, Next has handed out nothing.
func (q *Queue) Next(ctx context.Context, maxItems int, maxBytes int64, linger time.Duration) ([]Entry, error) {
	if maxItems <= 0 {
		maxItems = math.MaxInt
	}
	if maxBytes <= 0 {
		maxBytes = math.MaxInt64
	}
	select {
	case q.turn <- struct{}{}:
		defer func() { <-q.turn }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	return q.batch(ctx, limits{maxItems, maxBytes, linger})
}

func (q *Queue) batch(ctx context.Context, l limits) ([]Entry, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.drainByLocked(drainByNext); err != nil {
		return nil, err
	}
	for {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		q.refillLocked()
		if q.spill.broken != nil {
			return nil, q.spill.broken
		}
		if q.fresh.entries == 0 && q.closed {
			return nil, cache.ErrFIFOClosed
		}
		patience := q.patienceLocked(l)
		if patience <= 0 || q.sleepLocked(ctx, l, patience) {
			return q.handOutLocked(l), nil
		}
	}
}

// forever is the patience with an empty queue.
const forever = time.Duration(math.MaxInt64)

// patienceLocked tells how much longer to wait for a better batch.
func (q *Queue) patienceLocked(l limits) time.Duration {
	switch {
	case q.fresh.entries == 0:
		return forever
	case q.closed, q.hurried, !q.line.empty(), q.spill.behind > 0, q.fresh.entries >= l.entries, q.fresh.bytes >= l.bytes:
		return 0
	}
	if q.onlyBookmarksLocked() {
		return max(l.linger, q.bookmarkLinger) - time.Since(q.oldestBookmarkLocked())
	}
	return l.linger - time.Since(q.oldestDeltaLocked())
}

// hurry has Next hand out all that waits.
func (q *Queue) hurry() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.fresh.entries > 0 {
		q.hurried = true
		q.wakeLocked()
	}
}

func (q *Queue) onlyBookmarksLocked() bool { return q.fresh.entries == q.fresh.bookmarks }

// oldestBookmarkLocked looks at all that waits, where that is bookmarks only: one a stream at most.
func (q *Queue) oldestBookmarkLocked() time.Time {
	oldest := q.cursor.since
	for n := q.cursor.after; n != nil; n = n.after {
		if n.since.Before(oldest) {
			oldest = n.since
		}
	}
	return oldest
}

func (q *Queue) oldestDeltaLocked() time.Time {
	n := q.cursor
	for n.entry.Bookmark() {
		n = n.after
	}
	return n.since
}

// sleepLocked gives up the lock until there is reason to look again, or patience is at its end. That is counted by the
// runtime's clock: the clock that stamps may stand still.
func (q *Queue) sleepLocked(ctx context.Context, l limits, patience time.Duration) (timeout bool) {
	q.sleeper = sleeper{asleep: true, entries: l.entries, bytes: l.bytes, delta: q.onlyBookmarksLocked()}
	if q.fresh.entries == 0 {
		q.sleeper.entries = 1
	}
	q.mu.Unlock()
	defer func() {
		q.mu.Lock()
		q.sleeper.asleep = false
	}()
	if patience == forever {
		select {
		case <-q.wake:
		case <-ctx.Done():
		}
		return false
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-q.wake:
	case <-timer.C:
		return true
	case <-ctx.Done():
	}
	return false
}

// stirLocked wakes Next if n is what it waits for: not for every entry, because waking costs more than enqueuing.
func (q *Queue) stirLocked(n *node) {
	s := &q.sleeper
	if s.asleep && (q.fresh.entries >= s.entries || q.fresh.bytes >= s.bytes || s.delta && !n.entry.Bookmark()) {
		q.wakeLocked()
	}
}

func (q *Queue) wakeLocked() {
	q.sleeper.asleep = false
	select {
	case q.wake <- struct{}{}:
	default: // It has been told already.
	}
}

func (q *Queue) handOutLocked(l limits) []Entry {
	batch := make([]Entry, 0, min(q.fresh.entries, l.entries))
	bytes := int64(0)
	for n := q.cursor; n != nil && len(batch) < l.entries; n = n.after {
		bytes += int64(n.entry.Bytes)
		if bytes > l.bytes && len(batch) > 0 {
			break
		}
		n.handed = true
		q.fresh.sub(n)
		q.cursor = n.after
		batch = append(batch, n.entry)
	}
	q.handed += len(batch)
	q.hurried = q.hurried && q.cursor != nil
	return batch
}

// Done tells that the n oldest entries that are handed out are committed, and lets them leave. KnownObjects must show
// them already. It panics if fewer than n are handed out.
func (q *Queue) Done(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if n < 0 || n > q.handed {
		panic(fmt.Sprintf("deltafifo: Done(%d) with %d entries handed out", n, q.handed))
	}
	q.handed -= n
	copies := 0
	for range n {
		if q.held.head.copied {
			copies++
		}
		q.leaveLocked(q.held.head)
	}
	q.committedLocked(n, copies)
	q.admitLocked()
}

// Requeue takes back all entries that are handed out and not done: Next hands them out again, in the same order.
func (q *Queue) Requeue() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for n := q.held.head; q.handed > 0; n = n.after {
		n.handed = false
		q.fresh.add(n)
		q.handed--
	}
	q.cursor = q.held.head
	q.wakeLocked()
}
