package recorder

import "time"

// occurrence says when the deltas of one stream happened. What is observed live happened when it was observed. What a
// stream catches up on after a pause happened within the pause: at the time that the object itself gives evidence of,
// else at the pause's end.
type occurrence struct {
	from, to   time.Time
	catchingUp bool
	// undone says that what objects give evidence of was served before, and undone: when it came back, nothing shows.
	undone bool
}

// settle is how long after the watch was opened a delta may still belong to the pause: the server sends what was missed
// at once.
const settle = 30 * time.Second

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
	if observed.Sub(opened) > settle || hasEvidence && !evidence.Before(o.to) {
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
