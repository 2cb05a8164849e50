package reflector

import (
	"time"

	"k8s.io/utils/clock"
)

// resyncs computes when the store's resync is due. Another watch does not change that time, so frequent reconnects do
// not delay the resync.
type resyncs struct {
	period time.Duration // Options.ResyncPeriod
	at     time.Time
	clock  clock.Clock
}

// timer returns a timer that fires when the next resync is due. Without resyncs it never fires.
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

// begun sets the time of the next resync, because one begins now.
func (s *resyncs) begun() { s.at = s.clock.Now().Add(s.period) }
