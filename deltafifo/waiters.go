package deltafifo

import (
	"time"

	"k8s.io/client-go/tools/cache"
)

// waiters are the calls that wait for room, in the order in which they came. A stream enqueues one entry at a time, so
// it waits once: a busy stream cannot block a quiet one. InterruptTogether may wait in addition. The queue's lock
// protects it.
type waiters struct {
	list    []waiter
	since   time.Time     // since when at least one call waits
	blocked time.Duration // how long at least one call waited, without the present wait
}

type waiter struct {
	node     *node
	admitted chan error
}

func (l *waiters) empty() bool { return len(l.list) == 0 }

func (l *waiters) blockedFor(now time.Time) time.Duration {
	if l.empty() {
		return l.blocked
	}
	return l.blocked + now.Sub(l.since)
}

// wait appends n. The channel receives nil when n is accepted, or the reason why it is not.
func (l *waiters) wait(n *node) <-chan error {
	if l.empty() {
		l.since = time.Now()
	}
	w := waiter{node: n, admitted: make(chan error, 1)}
	l.list = append(l.list, w)
	return w.admitted
}

// admit lets accept take the entries in order, until it refuses one. No entry overtakes another, so that large entries
// get their turn.
func (l *waiters) admit(accept func(*node) bool) {
	admitted := 0
	for _, w := range l.list {
		if !accept(w.node) {
			break
		}
		w.admitted <- nil
		admitted++
	}
	if admitted > 0 {
		l.keep(append(l.list[:0], l.list[admitted:]...))
	}
}

// cancel removes the calls whose FIFO is closed, and gives their nodes back.
func (l *waiters) cancel(closed func(*feeder) bool, giveBack func(*node)) {
	kept := l.list[:0]
	for _, w := range l.list {
		if !closed(w.node.feeder) {
			kept = append(kept, w)
			continue
		}
		giveBack(w.node)
		w.admitted <- cache.ErrFIFOClosed
	}
	l.keep(kept)
}

func (l *waiters) keep(kept []waiter) {
	clear(l.list[len(kept):])
	l.list = kept
	if l.empty() {
		l.blocked += time.Since(l.since)
	}
}
