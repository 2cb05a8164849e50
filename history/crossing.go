package history

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// bound corrects which deltas after the point's seq belong to it. If resource versions prove an order, it overrides the
// estimates.
func (p *Point) bound(ctx context.Context, v *view) error {
	if p.Until <= p.Seq {
		return nil
	}
	pauses, err := v.pauses(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(pauses, func(pause Pause) bool { return !p.Time.Before(pause.From) && p.Time.Before(pause.To) })
	if i < 0 {
		return nil
	}
	w, err := newWindow(ctx, v, outageBefore(pauses, pauses[i].AfterSeq+1))
	if err != nil {
		return err
	}
	p.follow(w, &pauses[i])
	return nil
}

// follow applies the spans of a window to the point.
func (p *Point) follow(w *window, pause *Pause) {
	f := &resolver{point: *p}
	contradictory := 0
	f.point.crossed = make(map[int64]bool)
	for seq, e := range w.spans {
		if e.Contradictory {
			contradictory++
		}
		if by := !e.Estimate.After(p.Time); seq > p.Seq && by == e.recorded.After(p.Time) {
			f.point.crossed[seq] = by
		}
	}
	if len(f.point.crossed) > 0 && w.resources > 1 {
		f.note(NoteOneEtcd, nil, pause.From, pause.To,
			"one etcd serves %d of the resources: the order of its resource versions moves %s to the other side of this instant",
			w.resources, changes(len(f.point.crossed)))
	}
	if contradictory > 0 {
		f.note(NoteEstimated, nil, pause.From, pause.To,
			"clocks of servers contradict the order of resource versions: the times of %s in the pause stay estimates", changes(contradictory))
	}
	*p = f.point
}

func changes(n int) string {
	if n == 1 {
		return "1 change"
	}
	return fmt.Sprintf("%d changes", n)
}

// by reports whether a delta after the point's seq happened by the point's time.
func (p *Point) by(seq int64, occurred time.Time) bool {
	if by, ok := p.crossed[seq]; ok {
		return by
	}
	return !occurred.After(p.Time)
}

// crossings lists the deltas whose estimated time contradicts the point. Deltas in belong to the point, but are estimated
// later. Deltas out do not belong to it, but are estimated earlier.
func (p *Point) crossings() (in, out []int64) {
	in, out = []int64{}, []int64{} // SQL compares nothing with NULL, so neither may be nil.
	for seq, by := range p.crossed {
		if by {
			in = append(in, seq)
		} else {
			out = append(out, seq)
		}
	}
	return in, out
}
