// Package lack says what is incomplete in an answer of the timeline, and of which state of the record the answer is.
//
// It gives every stretch that touches a window: before the record began, dropped days, gaps, pauses, estimated times, steps of
// clocks. If nothing was committed for two minutes, that is the last stretch. It prints nothing, and keeps nothing.
package lack

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/timeline/internal/ask"
)

// A Lack is a stretch of which an answer does not hold everything.
type Lack struct {
	From   int64       `json:"from"` // milliseconds since 1970
	To     *int64      `json:"to"`   // nil: it has not ended
	Kind   string      `json:"kind"`
	Stream string      `json:"stream,omitempty"`
	Cause  delta.Cause `json:"cause,omitempty"`
	Text   string      `json:"text"`
}

// The kinds.
const (
	Before    = "before"    // not recorded yet
	Gap       = "gap"       // versions may be missing
	Pause     = "pause"     // nobody recorded: times are estimates
	Pruned    = "pruned"    // dropped, or not in the database
	Estimated = "estimated" // nothing is missing, and times are estimates
	ClockStep = "clockstep" // the clock of the recorder stepped
	Unread    = "unread"    // it was not counted yet: ask on with the cursor
	Damaged   = "damaged"   // on record, and not to be read
)

// An Answer is what every answer begins with.
type Answer struct {
	Seq        int64  `json:"seq"`      // where the record ended
	Revision   int64  `json:"revision"` // another one: earlier answers may hold erased values, or lack new rows
	Incomplete []Lack `json:"incomplete"`
}

// A State is what is known of the record when an answer begins.
type State struct {
	Extent   history.Extent
	Revision int64

	gaps   []history.Gap
	pauses []history.Pause
	steps  []history.ClockStep
}

// Read reads the state of a record, for the streams of a scope. The error is history.ErrEmpty if nothing is recorded yet.
func Read(ctx context.Context, rec *history.Record, scope history.Scope) (s State, err error) {
	if s.Extent, err = rec.Extent(ctx); err != nil {
		return s, err
	}
	if s.Extent.FirstSeq == 0 {
		return s, fmt.Errorf("%w of cluster %s: start the recorder, and wait for its first list", history.ErrEmpty, rec.Cluster().Name)
	}
	if s.Revision, err = rec.Completeness().Revision(ctx); err != nil {
		return s, err
	}
	all, err := rec.Completeness().Gaps(ctx, history.Scope{})
	if err != nil {
		return s, err
	}
	for i := range all {
		if s.Revision++; !all[i].ToAt.IsZero() {
			s.Revision++ // Both the begin and the end of a gap change what answers say of the past.
		}
		if scope.Streams == nil || all[i].Stream != nil && slices.Contains(scope.Streams, all[i].Stream.ID) {
			s.gaps = append(s.gaps, all[i])
		}
	}
	if s.pauses, err = rec.Completeness().Pauses(ctx); err != nil {
		return s, err
	}
	s.steps, err = rec.Completeness().ClockSteps(ctx)
	return s, err
}

// Answer begins an answer about a window.
func (s *State) Answer(w ask.Window, now time.Time) Answer {
	return Answer{Seq: s.Extent.LastSeq, Revision: s.Revision, Incomplete: s.in(w, now)}
}

func (s *State) in(w ask.Window, now time.Time) []Lack {
	found := []Lack{}
	add := func(l Lack) { found = append(found, l) }
	if begunBy(w, s.Extent.WholeAt) {
		add(s.begin(w))
	}
	for i := range s.gaps {
		if g := &s.gaps[i]; touches(w, g.FromAt, g.ToAt) && (!g.FromAt.IsZero() || g.ToAt.IsZero() || begunBy(w, g.ToAt)) {
			add(gap(w, g))
		}
	}
	for _, p := range s.pauses {
		if touches(w, p.From, p.To) {
			add(stretch(p.From, p.To, Pause, fmt.Sprintf(
				"No recorder ran from %s to %s. What happened then was caught up on, and its times are estimates.", stamp(p.From), stamp(p.To))))
		}
	}
	for _, c := range s.steps {
		from, to := ordered(c.RecordAt, c.RecorderAt)
		if touches(w, from, to) {
			add(stretch(from, to, ClockStep, fmt.Sprintf("The clock of the recorder stepped from %s to %s: times around it are uncertain.", stamp(c.RecordAt), stamp(c.RecorderAt))))
		}
	}
	if end := s.Extent.LastAt; now.Sub(end) > history.QuietWithin && w.To.After(end) {
		add(stretch(end, time.Time{}, Pause, fmt.Sprintf("Nothing was committed after %s.", stamp(end))))
	}
	return found
}

func (s *State) begin(w ask.Window) Lack {
	if s.Extent.Pruned {
		return stretch(w.From, s.Extent.WholeAt, Pruned, fmt.Sprintf("Days before %s were dropped from the record.", stamp(s.Extent.WholeAt)))
	}
	return stretch(w.From, s.Extent.FirstAt, Before, fmt.Sprintf("The record begins at %s.", stamp(s.Extent.FirstAt)))
}

func gap(w ask.Window, g *history.Gap) Lack {
	l := stretch(g.FromAt, g.ToAt, Gap, "")
	if g.FromAt.IsZero() {
		l.From, l.Kind = w.From.UnixMilli(), Before
	}
	if l.Cause = g.Cause; g.Stream != nil {
		l.Stream = g.Stream.String()
	}
	switch {
	case g.FromAt.IsZero() && g.ToAt.IsZero():
		l.Text = fmt.Sprintf("%s is not recorded yet (%s).", l.Stream, why(g))
	case g.FromAt.IsZero():
		l.Text = fmt.Sprintf("%s was not recorded before %s (%s).", l.Stream, stamp(g.ToAt), why(g))
	case g.ToAt.IsZero():
		l.Text = fmt.Sprintf("Changes of %s after %s are not on record (%s).", l.Stream, stamp(g.FromAt), why(g))
	case g.Outcome == delta.OutcomeResumed:
		l.Kind = Estimated
		l.Text = fmt.Sprintf("%s was not watched from %s to %s (%s). Nothing is missing; times are estimates.", l.Stream, stamp(g.FromAt), stamp(g.ToAt), why(g))
	default:
		l.Text = fmt.Sprintf("Changes of %s from %s to %s may be missing (%s).", l.Stream, stamp(g.FromAt), stamp(g.ToAt), why(g))
	}
	return l
}

func why(g *history.Gap) string {
	if g.Detail == "" {
		return string(g.Cause)
	}
	return string(g.Cause) + ": " + g.Detail
}

// Lost says that the partitions of days are gone: from the first delta of each to the last, since between these and the next days nothing was to be recorded.
// Each day is said once; nil is none.
func (a *Answer) Lost(days ...*history.MissingDayError) {
	for _, m := range days {
		if m == nil {
			continue
		}
		l := stretch(m.FirstAt, m.LastAt.Add(time.Millisecond), Pruned, m.Error())
		if !slices.ContainsFunc(a.Incomplete, func(known Lack) bool { return known.Kind == Pruned && known.Text == l.Text }) {
			a.Incomplete = append(a.Incomplete, l)
		}
	}
}

// NotCounted says what of a window is still to be counted.
func NotCounted(from, to time.Time) Lack {
	return stretch(from, to, Unread, fmt.Sprintf("Not counted yet: %s to %s.", stamp(from), stamp(to)))
}

// Unseen says that something at an instant was not looked at.
func Unseen(at time.Time, text string) Lack { return stretch(at, at, Unread, text) }

// Hurt says that a version of an instant is damaged.
func Hurt(at time.Time, d *history.DamagedError) Lack {
	return stretch(at, at, Damaged, d.Error()+"; replay verify lists what is damaged")
}

// OfNotes says what an answer about one instant is to be taken with.
func OfNotes(notes []history.Note) []Lack {
	kinds := map[history.NoteKind]string{
		history.NoteEstimated: Estimated, history.NoteGap: Gap, history.NoteNotYet: Before, history.NoteAfterEnd: Pause, history.NoteGeneration: Gap, history.NoteOneEtcd: Estimated,
	}
	all := []Lack{}
	for _, n := range notes {
		kind, ok := kinds[n.Kind]
		if !ok {
			continue // It says how the answer was made, and not what is missing in it.
		}
		l := stretch(n.From, n.To, kind, n.Text)
		if l.Stream = n.Resource; n.Group != "" {
			l.Stream += "." + n.Group
		}
		all = append(all, l)
	}
	return all
}

func stretch(from, to time.Time, kind, text string) Lack {
	l := Lack{Kind: kind, Text: text}
	if !from.IsZero() {
		l.From = from.UnixMilli()
	}
	if !to.IsZero() {
		end := to.UnixMilli()
		l.To = &end
	}
	return l
}

// touches reports whether a stretch meets a window. A zero time is no bound.
func touches(w ask.Window, from, to time.Time) bool {
	return (from.IsZero() || from.Before(w.To)) && (to.IsZero() || to.After(w.From))
}

// begunBy reports whether a window begins before what begins with its window has ended. A part of a millisecond is no stretch: the page asks in milliseconds.
func begunBy(w ask.Window, end time.Time) bool { return w.From.Before(end.Truncate(time.Millisecond)) }

func ordered(a, b time.Time) (first, last time.Time) {
	if b.Before(a) {
		return b, a
	}
	return a, b
}

func stamp(t time.Time) string { return t.UTC().Truncate(time.Millisecond).Format(time.RFC3339Nano) }
