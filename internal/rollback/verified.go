package rollback

import (
	"slices"
	"time"

	"github.com/kuberewind/kuberewind/internal/times"
)

// maxPending is how long a pending version keeps Verified back. Most etcds keep less history than that, and some
// servers never answer.
const maxPending = 10 * time.Minute

// noteVerified notes that etcd answered for the newest version served before that time, and that nothing proved a
// rollback. Other versions may still be pending. A watch may deliver a version settledAfter late.
func (r *Streams) noteVerified(e *etcdState, before time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e.verifiedUntil = before.Add(-settledAfter)
}

// Verified returns the time up to which the newest version and the checked samples had an answer, and none proved a
// rollback. A sample that waits for longer than maxPending does not hold the time back. It is a time of the record's clock, and zero if nothing can be said. The time goes on record with a commit; observed is when
// the last entry of that commit was observed. A recorder that starts checks what was recorded after that time.
func (r *Streams) Verified(observed time.Time) (until time.Time) {
	if !r.allStreamsAdded() {
		return until // Some streams on record are not followed yet.
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !observed.After(r.gapsQueuedAt) {
		return until // The gaps of a rollback are not on record yet.
	}
	until = observed
	for _, c := range r.streams {
		if c.following.canAsk() {
			until = times.Earlier(until, c.verifiedLocked(observed))
		}
	}
	return until
}

// verifiedLocked returns the time up to which the stream's versions were checked. If the stream has nothing to
// check, it returns otherwise.
func (c *Stream) verifiedLocked(otherwise time.Time) (until time.Time) {
	switch {
	case !c.history.certain():
		return until // The gap of its rollback may not be on record yet.
	case c.etcd.newest.stream != nil:
		until = c.etcd.verifiedUntil
	default:
		until = otherwise
	}
	for _, s := range slices.Concat(c.samples.pending.kept, c.samples.beforePause.kept) {
		until = times.Earlier(until, s.recordTime)
	}
	if limit := c.all.now().Add(-maxPending); limit.After(c.all.beganAt) {
		until = times.Later(until, limit)
	}
	return until
}
