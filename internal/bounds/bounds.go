package bounds

import (
	"cmp"
	"slices"
	"time"

	"github.com/kuberewind/kuberewind/internal/times"
)

// A Delta holds the known times of one delta.
type Delta struct {
	RV       uint64
	Observed time.Time // the recorder observed it; it happened at or before this time
	Estimate time.Time // the record's estimate of when it happened
	Proved   time.Time // the whole second in which it happened; zero if nothing proves it
}

// A Span is the time range in which a delta happened. It includes both ends.
type Span struct {
	NotBefore, NotAfter time.Time
	Estimate            time.Time // between the two, in the order of the other proved times
	Contradictory       bool      // the clocks of servers disagree: Estimate is the recorded one, and NotBefore and NotAfter are the bounds of the pause
}

// proved returns the proved time, or zero. A time after Observed proves nothing: a client set it, or a clock is ahead.
func (d *Delta) proved() time.Time {
	if d.Proved.After(d.Observed) {
		return time.Time{}
	}
	return d.Proved
}

// Spans returns the span of each delta of a pause that began at a time. The resource versions of all deltas must come from
// one etcd (I4).
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

// upper is the upper bound that later deltas set. Spans adds deltas to it, from the last one backward.
type upper struct {
	limit time.Time // the earliest time by which one of these deltas had happened; zero if there is no delta yet
	order time.Time // the earliest observed or proved time of these deltas
}

// add adds one delta to the bound.
func (u *upper) add(d *Delta) {
	u.limit, u.order = earlier(u.limit, d.Observed), earlier(u.order, d.Observed)
	if proved := d.proved(); !proved.IsZero() {
		u.limit, u.order = earlier(u.limit, proved.Add(time.Second)), earlier(u.order, proved)
	}
}

// within sets the end of a span whose beginning is set, and moves the estimate into the span.
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

// earlier returns the earlier time. A zero a is no bound.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}
