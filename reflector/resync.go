package reflector

import "time"

// resyncTimer fires when the next resync is due, and never if there are none.
// The time stands across watches, so that frequent reconnects do not put it off.
func (r *Reflector) resyncTimer() (<-chan time.Time, func() bool) {
	if r.options.ResyncPeriod <= 0 {
		return nil, func() bool { return false }
	}
	now := r.clock.Now()
	if r.resyncAt.IsZero() {
		r.resyncAt = now.Add(r.options.ResyncPeriod)
	}
	timer := r.clock.NewTimer(max(0, r.resyncAt.Sub(now)))
	return timer.C(), timer.Stop
}

// resync lets the store resync, on the goroutine that feeds it.
func (r *Reflector) resync() error {
	r.resyncAt = r.clock.Now().Add(r.options.ResyncPeriod)
	if r.ShouldResync != nil && !r.ShouldResync() {
		return nil
	}
	return r.out.resync()
}
