package reflector

import (
	"time"

	"k8s.io/utils/clock"
)

// resyncs says when the store's resync is due. The time stands across watches,
// so that frequent reconnects do not put it off.
type resyncs struct {
	period time.Duration // Options.ResyncPeriod
	at     time.Time
	clock  clock.Clock
}

// timer fires when the next resync is due, and never if there are none.
func (s *resyncs) timer() (<-chan time.Time, func() bool) {
	if s.period <= 0 {
		return nil, func() bool { return false }
	}
	now := s.clock.Now()
	if s.at.IsZero() {
		s.at = now.Add(s.period)
	}
	timer := s.clock.NewTimer(max(0, s.at.Sub(now)))
	return timer.C(), timer.Stop
}

// begun puts off the next resync, because one begins.
func (s *resyncs) begun() { s.at = s.clock.Now().Add(s.period) }
