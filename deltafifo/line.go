package deltafifo

import (
	"time"

	"k8s.io/client-go/tools/cache"
)

// line holds the calls that wait for room, in the order in which they came. A stream enqueues one entry at a time, so it
// stands in line at most once: a busy stream cannot keep a quiet one out.
type line struct {
	waiters []waiter
	since   time.Time     // when the line began to form
	blocked time.Duration // for how long there was a line, without the present one
}

type waiter struct {
	node     *node
	admitted chan error
}

func (l *line) empty() bool { return len(l.waiters) == 0 }

func (l *line) blockedFor(now time.Time) time.Duration {
	if l.empty() {
		return l.blocked
	}
	return l.blocked + now.Sub(l.since)
}

func (q *Queue) standInLineLocked(n *node) <-chan error {
	if q.line.empty() {
		q.line.since = time.Now()
	}
	w := waiter{node: n, admitted: make(chan error, 1)}
	q.line.waiters = append(q.line.waiters, w)
	// A full queue cannot give a lingering Next more than it has.
	q.wakeLocked()
	return w.admitted
}

// admitLocked lets in as many as fit. Nobody overtakes, so that large entries get their turn.
func (q *Queue) admitLocked() {
	admitted := 0
	for _, w := range q.line.waiters {
		if !q.acceptLocked(w.node) {
			break
		}
		w.admitted <- nil
		admitted++
	}
	if admitted > 0 {
		q.keepInLineLocked(append(q.line.waiters[:0], q.line.waiters[admitted:]...))
	}
}

// dismissLocked sends those away whose FIFO is closed.
func (q *Queue) dismissLocked(closed func(*FIFO) bool) {
	if q.line.empty() {
		return
	}
	kept := q.line.waiters[:0]
	for _, w := range q.line.waiters {
		if !closed(w.node.fifo) {
			kept = append(kept, w)
			continue
		}
		q.held.put(w.node)
		w.admitted <- cache.ErrFIFOClosed
	}
	q.keepInLineLocked(kept)
	q.admitLocked()
}

func (q *Queue) keepInLineLocked(kept []waiter) {
	clear(q.line.waiters[len(kept):])
	q.line.waiters = kept
	if q.line.empty() {
		q.line.blocked += time.Since(q.line.since)
	}
}
