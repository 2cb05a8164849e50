package stream

import (
	"sync/atomic"
	"time"
)

// dating says when the deltas of a stream happened. It belongs to the goroutine that encodes; only opened is another's.
type dating struct {
	live occurrence
	// since is when this recorder took over: what was observed before it comes from a spool, and spooled is its.
	since   time.Time
	spooled occurrence
	// opened is when the first watch was, by the clock of the record, in nanoseconds since 1970; 0 before that.
	opened atomic.Int64
}

// of gives the occurrence of what was observed then.
func (d *dating) of(observed time.Time) *occurrence {
	if observed.Before(d.since) {
		return &d.spooled // A recorder before this one saw it live.
	}
	return &d.live
}

// watched notes that a watch was opened.
func (d *dating) watched(now time.Time) { d.opened.CompareAndSwap(0, now.UnixNano()) }

// watchedSince is when the first watch of this process was opened. What was missed is served soon after that, or before it by
// a list.
func (d *dating) watchedSince(now time.Time) time.Time {
	if opened := d.opened.Load(); opened != 0 {
		return time.Unix(0, opened)
	}
	return now
}

// occurrence says when the deltas of one stream happened. What is observed live happened when it was observed. What a
// stream catches up on after a pause happened within the pause: at the time that the object itself gives evidence of,
// else at the pause's end.
type occurrence struct {
	from, to   time.Time
	catchingUp bool
	// undone says that what objects give evidence of was served before, and undone: when it came back, nothing shows.
	undone bool
}

// catchUpFor is how long after the watch was opened a delta may still belong to the pause: the server sends what was missed
// at once.
const catchUpFor = 30 * time.Second

// resume starts to catch up on the stretch from..to.
func (o *occurrence) resume(from, to time.Time) {
	*o = occurrence{from: from, to: to, catchingUp: !from.IsZero() && from.Before(to)}
}

// live says that the stream has reached the present: a bookmark, or a list that is complete.
func (o *occurrence) live() { o.catchingUp = false }

// reversed says that the server's history went backwards within the stretch.
func (o *occurrence) reversed() { o.undone = true }

// at gives the time of one delta of a watch that was opened at the time given. Evidence has whole seconds at best.
func (o *occurrence) at(opened, observed, evidence time.Time, hasEvidence bool) time.Time {
	if !o.catchingUp {
		return observed
	}
	hasEvidence = hasEvidence && !o.undone
	if observed.Sub(opened) > catchUpFor || hasEvidence && !evidence.Before(o.to) {
		o.live()
		return observed
	}
	if !hasEvidence {
		return o.to
	}
	if evidence.Before(o.from) {
		return o.from
	}
	return evidence
}
