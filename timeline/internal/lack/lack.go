// Package lack names what is incomplete in an answer of the timeline, and the state of the record that the answer describes.
//
// It returns every period that touches a window: before the record began, dropped days, gaps, pauses, estimated times, and clock
// steps. If the recorder committed nothing for two minutes, that is the last period. The package prints nothing and keeps
// nothing.
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

// A Lack is a period for which an answer is incomplete.
type Lack struct {
	From   int64       `json:"from"` // milliseconds since 1970
	To     *int64      `json:"to"`   // nil: it has not ended
	Kind   string      `json:"kind"`
	Stream string      `json:"stream,omitempty"`
	Cause  delta.Cause `json:"cause,omitempty"`
	Text   string      `json:"text"`
}

// These are the kinds of a Lack.
const (
	Before    = "before"    // not recorded yet
	Gap       = "gap"       // versions may be missing
	Pause     = "pause"     // no recorder ran: times are estimates
	Pruned    = "pruned"    // dropped, or not in the database
	Estimated = "estimated" // nothing is missing, but times are estimates
	ClockStep = "clockstep" // the clock of the recorder stepped
	Unread    = "unread"    // not counted yet: ask again with the cursor
	Damaged   = "damaged"   // on record, but unreadable
)

// An Answer is the common beginning of every answer.
type Answer struct {
	Seq        int64  `json:"seq"`      // where the record ended
	Revision   int64  `json:"revision"` // if it changes, earlier answers may hold erased values, or lack new rows
	Incomplete []Lack `json:"incomplete"`
}

// A State is the state of the record when an answer begins.
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
			s.Revision++ // The beginning and the end of a gap both change answers about the past.
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

// Answer returns the common beginning of an answer about a window.
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
			add(period(p.From, p.To, Pause, fmt.Sprintf(
				"No recorder ran from %s to %s. What happened then was caught up on, and its times are estimates.", stamp(p.From), stamp(p.To))))
		}
	}
	for _, c := range s.steps {
		from, to := ordered(c.RecordAt, c.RecorderAt)
		if touches(w, from, to) {
			add(period(from, to, ClockStep, fmt.Sprintf("The clock of the recorder stepped from %s to %s: times around it are uncertain.", stamp(c.RecordAt), stamp(c.RecorderAt))))
		}
	}
	if end := s.Extent.LastAt; now.Sub(end) > history.QuietWithin && w.To.After(end) {
		add(period(end, time.Time{}, Pause, fmt.Sprintf("Nothing was committed after %s.", stamp(end))))
	}
	return found
}

func (s *State) begin(w ask.Window) Lack {
	if s.Extent.Pruned {
		return period(w.From, s.Extent.WholeAt, Pruned, fmt.Sprintf("Days before %s were dropped from the record.", stamp(s.Extent.WholeAt)))
	}
	return period(w.From, s.Extent.FirstAt, Before, fmt.Sprintf("The record begins at %s.", stamp(s.Extent.FirstAt)))
}

func gap(w ask.Window, g *history.Gap) Lack {
	l := period(g.FromAt, g.ToAt, Gap, "")
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

// Lost adds the days whose partitions are gone to an answer. The period of a day ends with its last delta: nothing was
// recorded between that delta and the next day. Lost adds each day once, and ignores nil.
func (a *Answer) Lost(days ...*history.MissingDayError) {
	for _, m := range days {
		if m == nil {
			continue
		}
		l := period(m.FirstAt, m.LastAt.Add(time.Millisecond), Pruned, m.Error())
		if !slices.ContainsFunc(a.Incomplete, func(known Lack) bool { return known.Kind == Pruned && known.Text == l.Text }) {
			a.Incomplete = append(a.Incomplete, l)
		}
	}
}

// NotCounted returns the uncounted part of a window.
func NotCounted(from, to time.Time) Lack {
	return period(from, to, Unread, fmt.Sprintf("Not counted yet: %s to %s.", stamp(from), stamp(to)))
}

// Unseen says that an answer did not look at something at an instant.
func Unseen(at time.Time, text string) Lack { return period(at, at, Unread, text) }

// DamagedAt says that a version at an instant is damaged.
func DamagedAt(at time.Time, d *history.DamagedError) Lack {
	return period(at, at, Damaged, d.Error()+"; replay verify lists all damage")
}

// OfNotes converts the notes of one instant.
func OfNotes(notes []history.Note) []Lack {
	kinds := map[history.NoteKind]string{
		history.NoteEstimated: Estimated, history.NoteGap: Gap, history.NoteNotYet: Before, history.NoteAfterEnd: Pause, history.NoteGeneration: Gap, history.NoteOneEtcd: Estimated,
	}
	all := []Lack{}
	for _, n := range notes {
		kind, ok := kinds[n.Kind]
		if !ok {
			continue // The note says how the answer was made. Nothing is missing.
		}
		l := period(n.From, n.To, kind, n.Text)
		if l.Stream = n.Resource; n.Group != "" {
			l.Stream += "." + n.Group
		}
		all = append(all, l)
	}
	return all
}

func period(from, to time.Time, kind, text string) Lack {
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

// touches reports whether a period overlaps a window. A zero time does not bound.
func touches(w ask.Window, from, to time.Time) bool {
	return (from.IsZero() || from.Before(w.To)) && (to.IsZero() || to.After(w.From))
}

// begunBy reports whether a window begins before end. It ignores a part of a millisecond, because the page asks in
// milliseconds.
func begunBy(w ask.Window, end time.Time) bool { return w.From.Before(end.Truncate(time.Millisecond)) }

func ordered(a, b time.Time) (first, last time.Time) {
	if b.Before(a) {
		return b, a
	}
	return a, b
}

func stamp(t time.Time) string { return t.UTC().Truncate(time.Millisecond).Format(time.RFC3339Nano) }
