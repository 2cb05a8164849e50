package history

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/internal/times"
)

// Resolve finds an instant in the record, for a scope. The point's notes say how far to trust the answer. The error is
// ErrEmpty, ErrBeforeRecord, ErrManyResources, a *MissingDayError, or an error of the database.
func (r *Record) Resolve(ctx context.Context, at Instant, scope Scope) (Point, error) {
	var p Point
	err := r.view.inSnapshot(ctx, func(v *view) (err error) {
		f := &resolver{view: v, scope: scope, now: time.Now().UTC(), point: Point{Instant: at}}
		err = f.find(ctx)
		p = f.point
		return err
	})
	if err == nil {
		err = p.bound(ctx, r.view)
	}
	if errors.Is(err, ErrBeforeRecord) {
		return Point{}, err // the error names the instant
	}
	if err != nil {
		return Point{}, fmt.Errorf("find %s in the record: %w", at, err)
	}
	return p, nil
}

// A resolver finds one point.
type resolver struct {
	view   *view // within a transaction
	scope  Scope
	extent Extent
	now    time.Time
	point  Point
}

func (f *resolver) find(ctx context.Context) (err error) {
	if f.extent, err = f.view.extent(ctx); err != nil {
		return err
	}
	if f.extent.FirstSeq == 0 {
		return fmt.Errorf("%w of cluster %s", ErrEmpty, f.view.cluster.Name)
	}
	f.point.recorded = f.extent.LastAt
	// The remembered streams may be older than this state of the record. They would lack a newer resource version.
	if err := f.view.refreshStreams(ctx); err != nil {
		return err
	}
	switch f.point.Instant.kind {
	case instantRV:
		return f.byRV(ctx)
	case instantSeq:
		return f.bySeq(ctx)
	default:
		return f.byTime(ctx)
	}
}

func (f *resolver) note(kind NoteKind, s *Stream, from, to time.Time, format string, args ...any) {
	n := Note{Kind: kind, From: from, To: to, Text: fmt.Sprintf(format, args...)}
	if s != nil {
		n.Group, n.Resource = s.Group, s.Resource
	}
	f.point.Notes = append(f.point.Notes, n)
}

func (f *resolver) before() error {
	return &BeforeRecordError{Instant: f.point.Instant, FirstAt: f.extent.WholeAt, FirstSeq: f.extent.WholeSeq, Pruned: f.extent.Pruned}
}

// stamp formats a time for people: they do not type microseconds.
func stamp(t time.Time) string { return exactly(t.Truncate(time.Millisecond)) }

func exactly(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

func (f *resolver) bySeq(ctx context.Context) error {
	p := &f.point
	p.Seq = f.point.Instant.n
	if p.Seq < f.extent.WholeSeq {
		return f.before()
	}
	if p.Seq > f.extent.LastSeq {
		f.note(NoteAfterEnd, nil, f.extent.LastAt, time.Time{}, "the record ends at seq:%d, at %s: this is its last state", f.extent.LastSeq, stamp(f.extent.LastAt))
		p.Seq = f.extent.LastSeq
	}
	var err error
	if p.Time, err = (calendar{view: f.view}).timeOf(ctx, p.Seq); err != nil {
		return err
	}
	return f.gapsAt(ctx, p.Time)
}

func (f *resolver) byTime(ctx context.Context) error {
	p := &f.point
	p.Time = times.Later(f.now, f.extent.LastAt) // now is the end of the record, even if the recorder's clock is ahead of this one
	switch p.Instant.kind {
	case instantAgo:
		p.Time = f.now.Add(-time.Duration(p.Instant.n))
	case instantTime:
		p.Time = time.Unix(0, p.Instant.n).UTC()
	default:
	}
	if p.Time.Before(f.extent.WholeAt) {
		return f.before()
	}
	f.afterEnd()
	var err error
	if p.Seq, err = (calendar{view: f.view}).lastBy(ctx, p.Time); err != nil {
		return err
	}
	if err := f.caughtUp(ctx); err != nil {
		return err
	}
	return f.gapsAt(ctx, p.Time)
}

func (f *resolver) afterEnd() {
	p := &f.point
	if !p.Time.After(f.extent.LastAt) || (p.Instant.IsNow() && f.now.Sub(f.extent.LastAt) < QuietWithin) {
		return
	}
	f.note(NoteAfterEnd, nil, f.extent.LastAt, time.Time{}, "the record ends at %s: this is its last state", stamp(f.extent.LastAt))
}

// caughtUpWithin is how long after a pause or an interruption the record may still receive changes that happened in it.
const caughtUpWithin = 30 * time.Minute

// caughtUp finds the last seq that may hold deltas that occurred by the instant but were observed after it. There are such
// deltas only if the instant lies in a pause, or in an interruption of a stream after which nothing was missed.
func (f *resolver) caughtUp(ctx context.Context) error {
	p := &f.point
	var until time.Time
	pauses, err := f.view.pauses(ctx)
	if err != nil {
		return err
	}
	for _, pause := range pauses {
		if !p.Time.Before(pause.From) && p.Time.Before(pause.To) {
			until = times.Later(until, pause.To)
			f.note(NoteEstimated, nil, pause.From, pause.To,
				"no recorder ran from %s to %s: what happened then was caught up on, and when it happened within that time is an estimate", stamp(pause.From), stamp(pause.To))
		}
	}
	gaps, err := f.view.gaps(ctx, f.scope)
	if err != nil {
		return err
	}
	for i := range gaps {
		g := &gaps[i]
		if g.Outcome == delta.OutcomeResumed && !g.ToAt.IsZero() && !g.FromAt.IsZero() && g.Covers(p.Time) {
			until = times.Later(until, g.ToAt)
			f.note(NoteEstimated, g.Stream, g.FromAt, g.ToAt,
				"%s could not be watched from %s to %s (%s): nothing was missed, but when it happened within that time is an estimate", g.Stream, stamp(g.FromAt), stamp(g.ToAt), g.Cause)
		}
	}
	if until.IsZero() {
		return nil
	}
	last, err := calendar{view: f.view}.lastBy(ctx, until.Add(caughtUpWithin))
	if last > p.Seq {
		p.Until = last
	}
	return err
}

// gapsAt notes the streams that were not followed at a time, or not followed yet.
func (f *resolver) gapsAt(ctx context.Context, t time.Time) error {
	gaps, err := f.view.gaps(ctx, f.scope)
	if err != nil {
		return err
	}
	noted := make(map[int32]bool)
	for i := range gaps {
		g := &gaps[i]
		if g.Stream == nil || !g.Covers(t) || (g.Outcome == delta.OutcomeResumed && !g.FromAt.IsZero()) {
			continue
		}
		f.noteGap(g)
		noted[g.Stream.ID] = true
	}
	streams, err := f.view.streamsIn(ctx, f.scope)
	if err != nil {
		return err
	}
	for _, s := range streams {
		// A stream whose first list is not complete has no gap yet.
		if s.Position == "" && !noted[s.ID] {
			f.note(NoteNotYet, s, time.Time{}, time.Time{}, "%s is not recorded yet: its first list is not complete", s)
		}
	}
	return nil
}

func (f *resolver) noteGap(g *Gap) {
	switch {
	case g.FromAt.IsZero() && g.ToAt.IsZero():
		f.note(NoteNotYet, g.Stream, g.FromAt, g.ToAt, "%s was not recorded yet: %s", g.Stream, because(g))
	case g.FromAt.IsZero():
		f.note(NoteNotYet, g.Stream, g.FromAt, g.ToAt, "%s was not recorded before %s: %s", g.Stream, stamp(g.ToAt), because(g))
	case g.ToAt.IsZero():
		f.note(NoteGap, g.Stream, g.FromAt, g.ToAt, "changes of %s after %s are not on record: %s", g.Stream, stamp(g.FromAt), because(g))
	default:
		f.note(NoteGap, g.Stream, g.FromAt, g.ToAt, "changes of %s between %s and %s may have been missed: %s", g.Stream, stamp(g.FromAt), stamp(g.ToAt), because(g))
	}
}

func because(g *Gap) string {
	if g.Detail == "" {
		return string(g.Cause)
	}
	return string(g.Cause) + ", " + g.Detail
}
