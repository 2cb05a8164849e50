package deltafifo

import (
	"context"
	"sync"
	"time"
)

// sleeper holds the conditions that wake a sleeping Next. The queue's lock protects it.
type sleeper struct {
	wake    chan struct{} // makes the sleeping Next look again
	hurried bool          // a position was proved, and Next has not yet handed out all entries that waited then

	asleep  bool
	entries int
	bytes   int64
	delta   bool // the first entry that is not a bookmark wakes Next
}

func newSleeper() *sleeper { return &sleeper{wake: make(chan struct{}, 1)} }

// await notes the conditions for waking: more than waits already.
func (s *sleeper) await(l limits, waits *memory) {
	s.asleep, s.entries, s.bytes, s.delta = true, l.entries, l.bytes, waits.onlyBookmarks()
	if waits.fresh.entries == 0 {
		s.entries = 1
	}
}

// sleep releases the queue's lock until Next has a reason to look again, or patience has passed. The runtime's clock
// measures patience, because the clock that stamps may stand still.
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

// stir wakes Next if n meets its conditions. It does not wake Next for every entry, because waking costs more than
// enqueuing.
func (s *sleeper) stir(n *node, fresh *tally) {
	if s.asleep && (fresh.entries >= s.entries || fresh.bytes >= s.bytes || s.delta && !n.entry.Bookmark()) {
		s.rouse()
	}
}

// rouse wakes Next in any case.
func (s *sleeper) rouse() {
	s.asleep = false
	select {
	case s.wake <- struct{}{}:
	default: // A wake-up is pending already.
	}
}
