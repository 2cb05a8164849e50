package bounds

import (
	"cmp"
	"slices"
	"time"

	"github.com/kuberewind/kuberewind/internal/times"
)

// A Delta is what is known of the time of one delta.
type Delta struct {
	RV       uint64
	Observed time.Time // it happened by then
	Estimate time.Time // when it happened, as far as the record knows
	Proved   time.Time // the whole second in which it happened; zero if nothing proves it
}

// A Span says between which times a delta happened. Both ends are included.
type Span struct {
	NotBefore, NotAfter time.Time
	Estimate            time.Time // within the two, and in the order of the other proved times
	Contradictory       bool      // the clocks of servers disagree: the estimate is as recorded, and the ends are only those of the pause
}

// proved is the proved time, or zero. One after the delta was observed proves nothing: a client made it up, or a clock is ahead.
func (d *Delta) proved() time.Time {
	if d.Proved.After(d.Observed) {
		return time.Time{}
	}
	return d.Proved
}

// Spans gives the span of each delta of a pause that began at a time. One etcd must have numbered them all.
func Spans(began time.Time, deltas []Delta) []Span {
	order := make([]int, len(deltas))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(deltas[a].RV, deltas[b].RV) })
	spans := make([]Span, len(deltas))
	lowest := began
	for _, i := range order {
		lowest = times.Later(lowest, deltas[i].proved())
		spans[i].NotBefore = lowest
	}
	var after upper
	for _, i := range slices.Backward(order) {
		spans[i].within(&deltas[i], &after, began)
	}
	return spans
}

// upper is what later deltas say: from the last one down to one.
type upper struct {
	limit time.Time // by when all of these happened; zero if there are none yet
	order time.Time // the earliest time that one of them is shown with, if it is proved
}

// add takes one more delta into account.
func (u *upper) add(d *Delta) {
	u.limit, u.order = earlier(u.limit, d.Observed), earlier(u.order, d.Observed)
	if proved := d.proved(); !proved.IsZero() {
		u.limit, u.order = earlier(u.limit, proved.Add(time.Second)), earlier(u.order, proved)
	}
}

// within ends a span that has its begin, and moves the estimate into it.
func (s *Span) within(d *Delta, after *upper, began time.Time) {
	order := earlier(after.order, d.Observed)
	after.add(d)
	s.NotAfter, s.Estimate = after.limit, d.Estimate
	if s.NotBefore.After(s.NotAfter) {
		s.NotBefore, s.NotAfter, s.Contradictory = began, d.Observed, true
		return
	}
	s.Estimate = times.Later(earlier(s.Estimate, order), s.NotBefore)
	s.Estimate = earlier(s.Estimate, s.NotAfter)
}

// earlier gives the earlier time. Zero stands for no bound.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}
