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

// Breaks are the gaps and pauses of what is shown, as remarks between the deltas.
type Breaks struct {
	rec    *history.Record
	scope  history.Scope
	bounds *Bounds
	stamp  func(time.Time) string
	// brief says the beginning of several resources in one line.
	brief  bool
	follow bool

	read    time.Time
	lastGap int64
	lastOne int64 // epoch of the last pause
	waiting []interruption
}

// NewBreaks reads nothing yet: refresh does. The texts have times as stamp writes them.
func NewBreaks(rec *history.Record, scope history.Scope, within *Bounds, stamp func(time.Time) string, brief, follow bool) *Breaks {
	return &Breaks{rec: rec, scope: scope, bounds: within, stamp: stamp, brief: brief, follow: follow}
}

// interruption is one line, and where it belongs.
type interruption struct {
	at    time.Time
	after int64 // seq, 0 if it is known by its time only
	began int32 // stream whose recording began, which comes before all of its deltas; 0 for none
	Remark
}

// refreshEvery is how old the gaps may be while a log is followed.
const refreshEvery = 5 * time.Second

// Refresh reads the gaps and pauses that came since it was last called.
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

// Reason is the cause of a gap, with what is known of it.
func Reason(g *history.Gap) string {
	if g.Detail == "" {
		return string(g.Cause)
	}
	return string(g.Cause) + " (" + g.Detail + ")"
}

// outcome says how a gap ended.
func outcome(g *history.Gap) string {
	switch {
	case g.ToAt.IsZero():
		return "; it is still open"
	case g.Outcome == delta.OutcomeEqual:
		return "; a list then held nothing new"
	case g.Outcome == delta.OutcomeRelisted:
		return fmt.Sprintf("; a list then showed %d new, %d changed, %d vanished, %d unchanged", g.Appeared, g.Changed, g.Vanished, g.Unchanged)
	}
	return ""
}

// Before gives the breaks before a delta.
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
		return true // Objects in the list were observed a little before the list had ended.
	default:
		return n.at.Before(d.ObservedAt) // A gap begins with the last delta before it.
	}
}

// Rest gives the breaks after the last delta.
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

// joined makes one line of the resources whose recording began together.
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
