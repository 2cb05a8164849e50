package stream

import (
	"sync/atomic"
	"time"
)

// dating computes when the deltas of a stream happened. It belongs to the goroutine that encodes; another goroutine
// sets only opened.
type dating struct {
	live occurrence
	// since is when this recorder took over. Entries that were observed before come from a spool, and spooled dates
	// them.
	since   time.Time
	spooled occurrence
	// opened is when the first watch was opened, by the clock of the record, in nanoseconds since 1970; 0 before that.
	opened atomic.Int64
}

// of returns the occurrence for an entry that was observed then.
func (d *dating) of(observed time.Time) *occurrence {
	if observed.Before(d.since) {
		return &d.spooled // An earlier recorder saw it live.
	}
	return &d.live
}

// watched notes that a watch was opened.
func (d *dating) watched(now time.Time) { d.opened.CompareAndSwap(0, now.UnixNano()) }

// watchedSince returns when the first watch of this process was opened. The server serves missed changes soon after
// that. A list serves them before it.
func (d *dating) watchedSince(now time.Time) time.Time {
	if opened := d.opened.Load(); opened != 0 {
		return time.Unix(0, opened)
	}
	return now
}

// occurrence computes when the deltas of one stream happened. A delta that the stream observes live happened when it
// was observed. A delta that the stream missed in a pause happened within the pause: at the time that the object itself
// shows, or else at the pause's end.
type occurrence struct {
	from, to   time.Time
	catchingUp bool
	// rolledBack says that objects show times from before a rollback. Nothing shows when the old state came back.
	rolledBack bool
}

// catchUpFor is how long after the opening of the watch a delta may still belong to the pause: the server sends the
// missed events at once.
const catchUpFor = 30 * time.Second

// resume begins to catch up on the pause from..to.
func (o *occurrence) resume(from, to time.Time) {
	*o = occurrence{from: from, to: to, catchingUp: !from.IsZero() && from.Before(to)}
}

// live notes that the stream has reached the present, by a bookmark or a complete list.
func (o *occurrence) live() { o.catchingUp = false }

// noteRollback notes that the server's history went backwards within the pause.
func (o *occurrence) noteRollback() { o.rolledBack = true }

// at returns the time of one delta of a watch that was opened at the given time. Evidence has whole seconds at best.
func (o *occurrence) at(opened, observed, evidence time.Time, hasEvidence bool) time.Time {
	if !o.catchingUp {
		return observed
	}
	hasEvidence = hasEvidence && !o.rolledBack
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
