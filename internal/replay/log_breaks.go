package replay

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/kuberewind/kuberewind/history"
)

// interruptions are the gaps and pauses of what is shown, as lines between the deltas.
type interruptions struct {
	rec     *Record
	scope   history.Scope
	bounds  *bounds
	printer *logPrinter
	// brief says the beginning of several resources in one line.
	brief  bool
	follow bool

	read    time.Time
	lastGap int64
	lastOne int64 // epoch of the last pause
	waiting []interruption
}

// interruption is one line, and where it belongs.
type interruption struct {
	at    time.Time
	after int64 // seq, 0 if it is known by its time only
	began int32 // stream whose recording began, which comes before all of its deltas; 0 for none
	remark
}

// refreshEvery is how old the gaps may be while a log is followed.
const refreshEvery = 5 * time.Second

func (i *interruptions) refresh(ctx context.Context) error {
	i.read = time.Now()
	gaps, err := i.rec.Gaps(ctx, i.scope)
	if err != nil {
		return err
	}
	pauses, err := i.rec.Pauses(ctx)
	if err != nil {
		return err
	}
	for n := range gaps {
		g := &gaps[n]
		if g.Number <= i.lastGap {
			continue
		}
		i.lastGap = g.Number
		i.add(i.gap(g))
	}
	for _, p := range pauses {
		if p.Epoch <= i.lastOne {
			continue
		}
		i.lastOne = p.Epoch
		i.add(interruption{at: p.From, after: p.AfterSeq, remark: remark{Kind: "pause", From: p.From, To: p.To, Text: fmt.Sprintf(
			"pause: no recorder ran from %s to %s; times of what was caught up on are estimates", i.printer.stamp(p.From), i.printer.stamp(p.To))}})
	}
	slices.SortStableFunc(i.waiting, func(a, b interruption) int { return a.at.Compare(b.at) })
	return nil
}

func (i *interruptions) add(n interruption) {
	if i.follow || i.bounds.touches(n.From, n.To) {
		i.waiting = append(i.waiting, n)
	}
}

func (i *interruptions) gap(g *history.Gap) interruption {
	n := interruption{at: g.FromAt, remark: remark{Kind: "gap", Group: g.Stream.Group, Resource: g.Stream.Resource, From: g.FromAt, To: g.ToAt}}
	if g.FromAt.IsZero() {
		n.Kind, n.at, n.From, n.began = "began", g.ToAt, g.ToAt, g.Stream.ID
		n.Text = fmt.Sprintf("%s recorded from %s on", g.Stream, i.printer.stamp(g.ToAt))
		if g.ToAt.IsZero() {
			n.at, n.From = g.Stream.StartedAt, g.Stream.StartedAt
			n.Text = fmt.Sprintf("%s not yet recorded: %s", g.Stream, reason(g))
		}
		return n
	}
	n.Text = fmt.Sprintf("gap: of %s, versions may have been missed from %s to %s: %s%s", g.Stream, i.printer.stamp(g.FromAt), i.until(g.ToAt), reason(g), outcome(g))
	if g.Outcome == history.OutcomeResumed {
		n.Text = fmt.Sprintf("interruption: %s was not followed from %s to %s: %s; nothing was missed, times are estimates",
			g.Stream, i.printer.stamp(g.FromAt), i.until(g.ToAt), reason(g))
	}
	return n
}

func (i *interruptions) until(t time.Time) string {
	if t.IsZero() {
		return "now"
	}
	return i.printer.stamp(t)
}

// reason is the cause of a gap, with what is known of it.
func reason(g *history.Gap) string {
	if g.Detail == "" {
		return g.Cause
	}
	return g.Cause + " (" + g.Detail + ")"
}

// outcome says how a gap ended.
func outcome(g *history.Gap) string {
	switch {
	case g.ToAt.IsZero():
		return "; it is still open"
	case g.Outcome == "equal":
		return "; a list then held nothing new"
	case g.Outcome == "relisted":
		return fmt.Sprintf("; a list then showed %d new, %d changed, %d vanished, %d unchanged", g.Appeared, g.Changed, g.Vanished, g.Unchanged)
	}
	return ""
}

// before prints what comes before a delta.
func (i *interruptions) before(ctx context.Context, d *history.Delta, give func(func() error) error) error {
	if i.follow && time.Since(i.read) > refreshEvery {
		if err := i.refresh(ctx); err != nil {
			return err
		}
	}
	var due []interruption
	i.waiting = slices.DeleteFunc(i.waiting, func(n interruption) bool {
		before := n.isBefore(d)
		if before {
			due = append(due, n)
		}
		return before
	})
	return i.print(due, give)
}

func (n *interruption) isBefore(d *history.Delta) bool {
	switch {
	case n.after > 0:
		return n.after < d.Seq
	case n.began != 0 && n.began == d.Stream.ID:
		return true // What the list held was observed a little before the list had ended.
	default:
		return n.at.Before(d.ObservedAt) // A gap begins with the last delta before it.
	}
}

// rest prints what comes after the last delta.
func (i *interruptions) rest(give func(func() error) error) error {
	err := i.print(i.waiting, give)
	i.waiting = nil
	return err
}

func (i *interruptions) print(due []interruption, give func(func() error) error) error {
	if i.brief {
		due = joined(due, i.printer)
	}
	for _, n := range due {
		if err := give(func() error { return i.printer.remark(n.remark) }); err != nil {
			return err
		}
	}
	return nil
}

// joined makes one line of the resources whose recording began together.
func joined(due []interruption, p *logPrinter) []interruption {
	var out []interruption
	var began []interruption
	flush := func() {
		if len(began) > 1 {
			from := slices.MinFunc(began, byTime).From
			to := slices.MaxFunc(began, byTime).From
			began = []interruption{{remark: remark{Kind: "began", From: from, To: to, Text: fmt.Sprintf(
				"%d resources recorded from %s on", len(began), p.stamp(to))}}}
		}
		out = append(out, began...)
		began = nil
	}
	for _, n := range due {
		if n.Kind == "began" {
			began = append(began, n)
			continue
		}
		flush()
		out = append(out, n)
	}
	flush()
	return out
}

func byTime(a, b interruption) int {
	return cmp.Or(a.From.Compare(b.From), cmp.Compare(a.Resource, b.Resource))
}
