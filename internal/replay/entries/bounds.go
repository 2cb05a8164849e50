package entries

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/history"
)

// Bounds are the two instants of a log: as requested, and as resolved.
type Bounds struct {
	Since, Until history.Instant
	HasSince     bool
	BySelf       bool // Since is the default

	From     history.Point
	hasFrom  bool
	To       history.Point
	fromTime time.Time // of Since, if it is a time
	times    *history.Times
}

// Resolve resolves the instants for a scope, and bounds the query by them.
func (b *Bounds) Resolve(ctx context.Context, rec *history.Record, note func(string), scope history.Scope, query *history.Query) error {
	b.times = rec.Times()
	// Resolve the beginning first, because the end of a growing record moves.
	var before *history.BeforeRecordError
	var from history.Point
	if b.HasSince {
		var err error
		if from, err = rec.Resolve(ctx, b.Since, scope); err != nil && !errors.As(err, &before) {
			return fmt.Errorf("--since: %w", err)
		}
	}
	to, err := rec.Resolve(ctx, b.Until, scope)
	if err != nil {
		return fmt.Errorf("--until: %w", err)
	}
	b.To = to
	query.ToSeq = max(to.Seq, to.Until)
	switch {
	case !b.HasSince:
		return nil
	case before != nil:
		if !b.BySelf {
			note(fmt.Sprintf("the record begins at %s, after %s", before.Begin(), b.Since))
		}
		return nil
	case from.Time.After(to.Time) || from.RV == "" && to.RV == "" && from.Seq > query.ToSeq:
		return fmt.Errorf("--since %s is after --until %s", b.Since, b.Until)
	}
	b.From, b.hasFrom = from, true
	switch {
	case from.RV != "":
		// A resource version begins at another seq in each stream, so Within compares the rows' own versions.
		if to.RV != "" && delta.Precedes(to.RV, from.RV) {
			return fmt.Errorf("--since %s is after --until %s", b.Since, b.Until)
		}
	case isSeq(b.Since), b.Since.IsNow():
		query.FromSeq = from.Seq
	default:
		query.From, b.fromTime = from.Time, from.Time
	}
	return nil
}

func isSeq(at history.Instant) bool {
	text := at.String()
	return len(text) > 4 && text[:4] == "seq:"
}

// When returns the time range in which a delta happened.
func (b *Bounds) When(ctx context.Context, d *history.Delta) (history.Span, error) {
	return b.times.Of(ctx, d)
}

// Holds reports whether a delta may have happened between the two instants, and returns the time range in which it happened.
// If following is true, there is no end.
func (b *Bounds) Holds(ctx context.Context, d *history.Delta, following bool) (held bool, span history.Span, err error) {
	if span, err = b.When(ctx, d); err != nil {
		return false, span, err
	}
	return b.Within(d, span, following), span, nil
}

// Within reports whether a delta with a known time range may have happened between the two instants.
func (b *Bounds) Within(d *history.Delta, span history.Span, following bool) bool {
	if b.hasFrom && b.From.RV != "" && delta.Precedes(d.RV, b.From.RV) {
		return false
	}
	if !b.fromTime.IsZero() && span.NotAfter.Before(b.fromTime) {
		return false // The recorder caught up on it after that instant, but it happened before.
	}
	return following || b.endsAfter(d, &span)
}

// endsAfter reports whether a delta may have happened by the end.
func (b *Bounds) endsAfter(d *history.Delta, span *history.Span) bool {
	switch {
	case d.Seq > b.To.Seq:
		return b.To.Until > 0 && !span.NotBefore.After(b.To.Time)
	default:
		return b.To.RV == "" || !delta.Precedes(b.To.RV, d.RV)
	}
}

// touches reports whether a time range overlaps the two instants.
func (b *Bounds) touches(from, to time.Time) bool {
	if b.hasFrom && !to.IsZero() && to.Before(b.From.Time) {
		return false
	}
	return b.To.Time.IsZero() || from.IsZero() || !from.After(b.To.Time)
}
