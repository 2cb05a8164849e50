package deltafifo

import (
	"context"
	"sync"
	"time"
)

// sleeper is what a Next that sleeps waits for. The queue's lock protects it.
type sleeper struct {
	wake    chan struct{} // tells the sleeping Next to look again
	hurried bool          // until Next has handed out all that waited when a position was proved

	asleep  bool
	entries int
	bytes   int64
	delta   bool // the first entry that is not a bookmark
}

func newSleeper() *sleeper { return &sleeper{wake: make(chan struct{}, 1)} }

// await notes what to wait for: more than waits already.
func (s *sleeper) await(l limits, waits *memory) {
	s.asleep, s.entries, s.bytes, s.delta = true, l.entries, l.bytes, waits.onlyBookmarks()
	if waits.fresh.entries == 0 {
		s.entries = 1
	}
}

// sleep gives up the queue's lock until there is reason to look again, or patience is at its end. That is counted by the
// runtime's clock: the clock that stamps may stand still.
func (s *sleeper) sleep(ctx context.Context, mu *sync.Mutex, patience time.Duration) (timeout bool) {
	mu.Unlock()
	defer func() {
		mu.Lock()
		s.asleep = false
	}()
	if patience == forever {
		select {
		case <-s.wake:
		case <-ctx.Done():
		}
		return false
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-s.wake:
	case <-timer.C:
		return true
	case <-ctx.Done():
	}
	return false
}

// stir wakes Next if n is what it waits for: not for every entry, because waking costs more than enqueuing.
func (s *sleeper) stir(n *node, fresh *tally) {
	if s.asleep && (fresh.entries >= s.entries || fresh.bytes >= s.bytes || s.delta && !n.entry.Bookmark()) {
		s.rouse()
	}
}

// rouse wakes Next, whatever it waits for.
func (s *sleeper) rouse() {
	s.asleep = false
	select {
	case s.wake <- struct{}{}:
	default: // It has been told already.
	}
}
