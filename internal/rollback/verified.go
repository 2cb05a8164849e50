package rollback

import (
	"slices"
	"time"

	"github.com/kuberewind/kuberewind/internal/times"
)

// mostWaited is how long a version may wait for an answer. Most etcds do not remember as much, and some servers never answer.
const maxPending = 10 * time.Minute

// verify notes that the newest version of before that time was found in the etcd. Other versions may still wait.
func (r *Streams) noteVerified(e *etcd, before time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e.verified = before.Add(-settledAfter)
}

// Verified is up to when what was served was looked for in etcd, and nothing spoke against it: by the clock of the record. It is
// zero where nothing can be said. Observed is when the last entry of a commit was observed, with which the time is to go on record.
// A successor has to look for what was recorded since.
func (r *Streams) Verified(observed time.Time) (until time.Time) {
	if !r.allStreamsAdded() {
		return until // Some streams on record are not followed yet.
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !observed.After(r.gapsQueued) {
		return until // The gaps of a rollback are not on record before that.
	}
	until = observed
	for _, c := range r.streams {
		if c.following.canAsk() {
			until = times.Earlier(until, c.verifiedLocked(observed))
		}
	}
	return until
}

// verifiedLocked is up to when what the stream was served was looked for, otherwise if there is nothing to look for.
func (c *Stream) verifiedLocked(otherwise time.Time) (until time.Time) {
	switch {
	case !c.history.certain():
		return until // The gap of its rollback may not be on record.
	case c.etcd.last.stream != nil:
		until = c.etcd.verified
	default:
		until = otherwise
	}
	for _, s := range slices.Concat(c.samples.pending.kept, c.samples.beforePause.kept) {
		until = times.Earlier(until, s.recordTime)
	}
	if limit := c.all.now().Add(-maxPending); limit.After(c.all.began) {
		until = times.Later(until, limit)
	}
	return until
}
