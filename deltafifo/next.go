package deltafifo

import (
	"context"
	"fmt"
	"math"
	"time"

	"k8s.io/client-go/tools/cache"
)

// limits of one batch.
type limits struct {
	entries int
	bytes   int64
	linger  time.Duration
}

// Next hands out the oldest entries that are not handed out yet: at most maxItems and at most maxBytes, but at least
// one. Zero or less means no limit. Next waits for an entry, and then for more until the oldest is linger old. If there
// are only bookmarks, it waits longer (Options.BookmarkLinger). It stops waiting when a limit is reached, a stream
// waits for room, a position was proved, or the queue is closed.
//
// The entries stay in the queue, and count, until Done. If ctx ends, Next returns its cause. If the queue is closed and
// every entry is handed out, it returns cache.ErrFIFOClosed. With an error, Next has handed out nothing.
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
	held := &q.backlog.memory
	for {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		q.refillLocked()
		if q.backlog.disk.broken != nil {
			return nil, q.backlog.disk.broken
		}
		if held.fresh.entries == 0 && q.closed {
			return nil, cache.ErrFIFOClosed
		}
		patience := q.patienceLocked(l)
		if patience <= 0 || q.sleepLocked(ctx, l, patience) {
			batch := held.handOut(l)
			q.sleeper.hurried = q.sleeper.hurried && held.cursor != nil
			return batch, nil
		}
	}
}

// forever is the waiting time for an empty queue.
const forever = time.Duration(math.MaxInt64)

// patienceLocked returns how much longer Next waits for a better batch.
func (q *Queue) patienceLocked(l limits) time.Duration {
	held := &q.backlog.memory
	switch {
	case held.fresh.entries == 0:
		return forever
	case q.closed, q.sleeper.hurried, !q.waiters.empty(), q.backlog.disk.behind > 0, held.fresh.entries >= l.entries, held.fresh.bytes >= l.bytes:
		return 0
	}
	if held.onlyBookmarks() {
		return max(l.linger, q.bookmarkLinger) - time.Since(held.oldestBookmark())
	}
	return l.linger - time.Since(held.oldestDelta())
}

func (q *Queue) sleepLocked(ctx context.Context, l limits, patience time.Duration) (timeout bool) {
	q.sleeper.await(l, &q.backlog.memory)
	return q.sleeper.sleep(ctx, &q.mu, patience)
}

// hurry makes Next hand out all waiting entries at once.
func (q *Queue) hurry() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.backlog.memory.fresh.entries > 0 {
		q.sleeper.hurried = true
		q.sleeper.rouse()
	}
}

// Done says that the n oldest handed-out entries are committed, and removes them. KnownObjects must show them already.
// It panics if fewer than n are handed out.
func (q *Queue) Done(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if handed := q.backlog.memory.handed; n < 0 || n > handed {
		panic(fmt.Sprintf("deltafifo: Done(%d) with %d entries handed out", n, handed))
	}
	q.backlog.commit(n)
	q.refillLocked()
	q.admitLocked()
}

// Requeue takes back all entries that are handed out and not done: Next hands them out again, in the same order.
func (q *Queue) Requeue() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.backlog.memory.requeue()
	q.sleeper.rouse()
}

// refillLocked reads back entries that are on disk only. After Close it does not: they are safe there.
func (q *Queue) refillLocked() {
	if !q.closed {
		q.backlog.refill(!q.waiters.empty())
	}
}
