package history

import (
	"context"
	"fmt"
	"time"

	"github.com/kuberewind/kuberewind/internal/times"
)

// A calendar relates seqs to times, within a transaction.
type calendar struct{ view *view }

// timeOf returns observed_at of a seq.
func (c calendar) timeOf(ctx context.Context, seq int64) (time.Time, error) {
	days, err := c.view.daysFrom(ctx, seq, seq)
	if err != nil || len(days) == 0 {
		return time.Time{}, err
	}
	if err := c.view.present(ctx, &days[0]); err != nil {
		return time.Time{}, err
	}
	at, err := c.observed(ctx, &days[0], seq)
	return at.UTC(), err
}

// observed returns observed_at of a seq. If the seq is missing, it returns that of the next seq, or else the end of the
// day. Package verify reports a missing seq; it is no reason to fail here.
func (c calendar) observed(ctx context.Context, d *Day, seq int64) (at time.Time, err error) {
	err = c.view.db.QueryRow(ctx, `
		SELECT observed_at FROM kuberewind.record_deltas
		WHERE cluster = $1 AND seq >= $2 AND observed_at BETWEEN $3 AND $4 ORDER BY seq LIMIT 1`, c.view.cluster.Number, seq, d.FirstAt, d.LastAt).Scan(&at)
	if isNoRows(err) {
		return d.LastAt, nil
	}
	if err != nil {
		return at, fmt.Errorf("read when seq %d was observed: %w", seq, err)
	}
	return at, nil
}

// lastBy returns the last seq whose observed_at is not after a time, or 0. observed_at does not decrease with seq, so about
// twenty index lookups find it.
func (c calendar) lastBy(ctx context.Context, t time.Time) (int64, error) {
	var d Day
	err := c.view.db.QueryRow(ctx, `
		SELECT day, first_seq, last_seq, first_at, last_at FROM kuberewind.record_days
		WHERE cluster = $1 AND first_at <= $2 ORDER BY first_seq DESC LIMIT 1`, c.view.cluster.Number, t).
		Scan(&d.Day, &d.FirstSeq, &d.LastSeq, &d.FirstAt, &d.LastAt)
	if isNoRows(err) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read the days of the record: %w", err)
	}
	if !t.Before(d.LastAt) {
		return d.LastSeq, nil
	}
	if err := c.view.present(ctx, &d); err != nil {
		return 0, err
	}
	low, high := d.FirstSeq, d.LastSeq // low was observed by t, high was not
	for high-low > 1 {
		middle := low + (high-low)/2
		at, err := c.observed(ctx, &d, middle)
		if err != nil {
			return 0, err
		}
		if at.After(t) {
			high = middle
		} else {
			low = middle
		}
	}
	return low, nil
}

// lastBefore is lastBy that excludes the time itself. The record counts microseconds.
func (c calendar) lastBefore(ctx context.Context, t time.Time) (int64, error) {
	return c.lastBy(ctx, t.Add(-time.Microsecond))
}

// caughtUpUntil returns by when, at the latest, the record holds everything that occurred between two times.
func (c calendar) caughtUpUntil(ctx context.Context, from, to time.Time) (until time.Time, err error) {
	until = to
	late := func(began, ended time.Time) {
		if began.Before(to) && !ended.Before(from) {
			until = times.Later(until, ended.Add(caughtUpWithin))
		}
	}
	pauses, err := c.view.pauses(ctx)
	if err != nil {
		return until, err
	}
	for _, p := range pauses {
		late(p.From, p.To)
	}
	gaps, err := c.view.gaps(ctx, Scope{})
	if err != nil {
		return until, err
	}
	for i := range gaps {
		if g := &gaps[i]; !g.FromAt.IsZero() && !g.ToAt.IsZero() {
			late(g.FromAt, g.ToAt)
		}
	}
	return until, nil
}
