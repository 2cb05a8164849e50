package deltafifo

import (
	"time"

	"k8s.io/client-go/tools/cache"
)

// line holds the calls that wait for room, in the order in which they came. A stream enqueues one entry at a time, so it
// stands in line once: a busy stream cannot keep a quiet one out. InterruptTogether comes beside that. The queue's lock protects it.
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

// stand puts n at the end. The channel says when it is let in, or that it is not.
func (l *line) stand(n *node) <-chan error {
	if l.empty() {
		l.since = time.Now()
	}
	w := waiter{node: n, admitted: make(chan error, 1)}
	l.waiters = append(l.waiters, w)
	return w.admitted
}

// admit lets in as many as are accepted. Nobody overtakes, so that large entries get their turn.
func (l *line) admit(accept func(*node) bool) {
	admitted := 0
	for _, w := range l.waiters {
		if !accept(w.node) {
			break
		}
		w.admitted <- nil
		admitted++
	}
	if admitted > 0 {
		l.keep(append(l.waiters[:0], l.waiters[admitted:]...))
	}
}

// dismiss sends those away whose FIFO is closed, and gives their nodes back.
func (l *line) dismiss(closed func(*feeder) bool, giveBack func(*node)) {
	kept := l.waiters[:0]
	for _, w := range l.waiters {
		if !closed(w.node.feeder) {
			kept = append(kept, w)
			continue
		}
		giveBack(w.node)
		w.admitted <- cache.ErrFIFOClosed
	}
	l.keep(kept)
}

func (l *line) keep(kept []waiter) {
	clear(l.waiters[len(kept):])
	l.waiters = kept
	if l.empty() {
		l.blocked += time.Since(l.since)
	}
}
