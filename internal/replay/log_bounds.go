package replay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/kuberewind/kuberewind/history"
)

// bounds are the two instants between which a log is, as they were asked for and as they were found.
type bounds struct {
	since, until history.Instant
	hasSince     bool
	bySelf       bool // since is the default

	from     history.Point
	hasFrom  bool
	to       history.Point
	fromTime time.Time // of since, if it is a time
}

// resolve finds the instants for a scope and bounds the query by them.
func (b *bounds) resolve(ctx context.Context, e *Env, rec *Record, scope history.Scope, query *history.Query) error {
	// The beginning first: the end of a record that is being written moves meanwhile.
	var before *history.BeforeRecordError
	var from history.Point
	if b.hasSince {
		var err error
		if from, err = rec.Resolve(ctx, b.since, scope); err != nil && !errors.As(err, &before) {
			return fmt.Errorf("--since: %w", err)
		}
	}
	to, err := rec.Resolve(ctx, b.until, scope)
	if err != nil {
		return fmt.Errorf("--until: %w", err)
	}
	b.to = to
	query.ToSeq = max(to.Seq, to.Until)
	switch {
	case !b.hasSince:
		return nil
	case before != nil:
		if !b.bySelf {
			e.Note(fmt.Sprintf("the record begins at %s, after %s", before.FirstAt.Local().Format(stampForm), b.since))
		}
		return nil
	case from.Time.After(to.Time) || from.RV == "" && to.RV == "" && from.Seq > query.ToSeq:
		return fmt.Errorf("--since %s is after --until %s", b.since, b.until)
	}
	b.from, b.hasFrom = from, true
	switch {
	case from.RV != "":
		// Which seq a resource version begins at differs from stream to stream: the rows say themselves.
		if to.RV != "" && compareRVs(from.RV, to.RV) > 0 {
			return fmt.Errorf("--since %s is after --until %s", b.since, b.until)
		}
	case isSeq(b.since), b.since.IsNow():
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

// compareRVs compares two resource versions of one resource. What is none is equal to all.
func compareRVs(a, b string) int {
	order, err := resourceversion.CompareResourceVersion(a, b)
	if err != nil {
		return 0
	}
	return order
}

// holds reports whether a delta is between the two. following says that there is no end.
func (b *bounds) holds(d *history.Delta, following bool) bool {
	if b.hasFrom && b.from.RV != "" && compareRVs(d.RV, b.from.RV) < 0 {
		return false
	}
	if !b.fromTime.IsZero() && d.OccurredAt.Before(b.fromTime) {
		return false // It was caught up on after that instant, and happened before.
	}
	switch {
	case following:
		return true
	case d.Seq > b.to.Seq:
		return b.to.Until > 0 && !d.OccurredAt.After(b.to.Time)
	default:
		return b.to.RV == "" || compareRVs(d.RV, b.to.RV) <= 0
	}
}

// touches reports whether a stretch of time meets the two instants.
func (b *bounds) touches(from, to time.Time) bool {
	if b.hasFrom && !to.IsZero() && to.Before(b.from.Time) {
		return false
	}
	return b.to.Time.IsZero() || from.IsZero() || !from.After(b.to.Time)
}
