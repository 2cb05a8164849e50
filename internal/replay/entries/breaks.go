package entries

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/history"
)

// Breaks returns gaps and pauses as remarks between the deltas.
type Breaks struct {
	rec    *history.Record
	scope  history.Scope
	bounds *Bounds
	stamp  func(time.Time) string
	// brief joins the beginnings of several resources into one line.
	brief  bool
	follow bool

	read    time.Time
	lastGap int64
	lastOne int64 // epoch of the last pause
	waiting []interruption
}

// NewBreaks returns empty Breaks; Refresh reads the gaps and pauses. stamp formats the times in the texts.
func NewBreaks(rec *history.Record, scope history.Scope, within *Bounds, stamp func(time.Time) string, brief, follow bool) *Breaks {
	return &Breaks{rec: rec, scope: scope, bounds: within, stamp: stamp, brief: brief, follow: follow}
}

// interruption is one remark, and its place between the deltas.
type interruption struct {
	at    time.Time
	after int64 // seq, 0 if only its time is known
	began int32 // stream whose recording began; the remark precedes all deltas of this stream; 0 for none
	Remark
}

// refreshEvery is the maximum age of the gaps while log follows the record.
const refreshEvery = 5 * time.Second

// Refresh reads the gaps and pauses that were recorded since its last call.
func (i *Breaks) Refresh(ctx context.Context) error {
	i.read = time.Now()
	gaps, err := i.rec.Completeness().Gaps(ctx, i.scope)
	if err != nil {
		return err
	}
	pauses, err := i.rec.Completeness().Pauses(ctx)
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
		i.add(interruption{at: p.From, after: p.AfterSeq, Remark: Remark{Kind: "pause", From: p.From, To: p.To, Text: fmt.Sprintf(
			"pause: no recorder ran from %s to %s; the recorder caught up afterwards, and these times are estimates", i.stamp(p.From), i.stamp(p.To))}})
	}
	slices.SortStableFunc(i.waiting, func(a, b interruption) int { return a.at.Compare(b.at) })
	return nil
}

func (i *Breaks) add(n interruption) {
	if i.follow || i.bounds.touches(n.From, n.To) {
		i.waiting = append(i.waiting, n)
	}
}

func (i *Breaks) gap(g *history.Gap) interruption {
	n := interruption{at: g.FromAt, Remark: Remark{Kind: "gap", Group: g.Stream.Group, Resource: g.Stream.Resource, From: g.FromAt, To: g.ToAt}}
	if g.FromAt.IsZero() {
		n.Kind, n.at, n.From, n.began = "began", g.ToAt, g.ToAt, g.Stream.ID
		n.Text = fmt.Sprintf("%s recorded from %s on", g.Stream, i.stamp(g.ToAt))
		if g.ToAt.IsZero() {
			n.at, n.From = g.Stream.StartedAt, g.Stream.StartedAt
			n.Text = fmt.Sprintf("%s not yet recorded: %s", g.Stream, Reason(g))
		}
		return n
	}
	n.Text = fmt.Sprintf("gap: versions of %s may be missing from %s to %s: %s%s", g.Stream, i.stamp(g.FromAt), i.until(g.ToAt), Reason(g), outcome(g))
	if g.Outcome == delta.OutcomeResumed {
		n.Text = fmt.Sprintf("interruption: the recorder did not follow %s from %s to %s: %s; no version is missing, times are estimates",
			g.Stream, i.stamp(g.FromAt), i.until(g.ToAt), Reason(g))
	}
	return n
}

func (i *Breaks) until(t time.Time) string {
	if t.IsZero() {
		return "now"
	}
	return i.stamp(t)
}

// Reason returns the cause of a gap, with its detail.
func Reason(g *history.Gap) string {
	if g.Detail == "" {
		return string(g.Cause)
	}
	return string(g.Cause) + " (" + g.Detail + ")"
}

// outcome returns a text about the end of a gap.
func outcome(g *history.Gap) string {
	switch {
	case g.ToAt.IsZero():
		return "; it is still open"
	case g.Outcome == delta.OutcomeEqual:
		return "; a list then held nothing new"
	case g.Outcome == delta.OutcomeRelisted && g.Appeared+g.Changed+g.Vanished+g.Unchanged > 0: // A rollback ends a gap without a list.
		return fmt.Sprintf("; a list then showed %d new, %d changed, %d vanished, %d unchanged", g.Appeared, g.Changed, g.Vanished, g.Unchanged)
	}
	return ""
}

// Before returns the breaks before a delta.
func (i *Breaks) Before(ctx context.Context, d *history.Delta) ([]Remark, error) {
	if i.follow && time.Since(i.read) > refreshEvery {
		if err := i.Refresh(ctx); err != nil {
			return nil, err
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
	return i.remarks(due), nil
}

func (n *interruption) isBefore(d *history.Delta) bool {
	switch {
	case n.after > 0:
		return n.after < d.Seq
	case n.began != 0 && n.began == d.Stream.ID:
		return true // The recorder observes the objects of a list shortly before the list ends.
	default:
		return n.at.Before(d.ObservedAt) // A gap begins with the last delta before it.
	}
}

// Rest returns the breaks after the last delta.
func (i *Breaks) Rest() []Remark {
	all := i.remarks(i.waiting)
	i.waiting = nil
	return all
}

func (i *Breaks) remarks(due []interruption) []Remark {
	if i.brief {
		due = joined(due, i.stamp)
	}
	all := make([]Remark, 0, len(due))
	for _, n := range due {
		all = append(all, n.Remark)
	}
	return all
}

// joined makes one line for consecutive resources whose recording began.
func joined(due []interruption, stamp func(time.Time) string) []interruption {
	var out []interruption
	var began []interruption
	flush := func() {
		if len(began) > 1 {
			from := slices.MinFunc(began, byTime).From
			to := slices.MaxFunc(began, byTime).From
			began = []interruption{{Remark: Remark{Kind: "began", From: from, To: to, Text: fmt.Sprintf(
				"%d resources recorded from %s on", len(began), stamp(to))}}}
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
