package history

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"
)

// A Day is what the record holds of one UTC day of observed_at: what the partition of that day holds of this cluster.
type Day struct {
	Day               time.Time // its midnight
	FirstSeq, LastSeq int64
	FirstAt, LastAt   time.Time // of observed_at
}

func (d *Day) holds(seq int64) bool { return seq >= d.FirstSeq && seq <= d.LastSeq }

// dayFresh is how long a partition that was found is taken to be there.
const dayFresh = time.Minute

// daysFrom gives the days that hold seqs from one to another, oldest first.
func (r *Record) daysFrom(ctx context.Context, db querier, fromSeq, toSeq int64) ([]Day, error) {
	rows, err := db.Query(ctx, `
		SELECT day, first_seq, last_seq, first_at, last_at FROM kuberewind.record_days
		WHERE cluster = $1 AND last_seq >= $2 AND first_seq <= $3 ORDER BY first_seq`, r.cluster.Number, fromSeq, toSeq)
	if err != nil {
		return nil, fmt.Errorf("read the days of the record: %w", err)
	}
	days, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (d Day, err error) {
		err = row.Scan(&d.Day, &d.FirstSeq, &d.LastSeq, &d.FirstAt, &d.LastAt)
		d.FirstAt, d.LastAt = d.FirstAt.UTC(), d.LastAt.UTC()
		return d, err
	})
	if err != nil {
		return nil, fmt.Errorf("read the days of the record: %w", err)
	}
	return days, nil
}

// present returns a *MissingDayError if the day's partition is gone: a query would just find nothing in it.
func (r *Record) present(ctx context.Context, db querier, d *Day) error {
	r.mu.Lock()
	found := r.days[d.Day]
	r.mu.Unlock()
	if time.Since(found) < dayFresh {
		return nil
	}
	var there bool
	err := db.QueryRow(ctx, `
		SELECT EXISTS (SELECT FROM kuberewind.record_deltas WHERE cluster = $1 AND seq BETWEEN $2 AND $3 AND observed_at BETWEEN $4 AND $5)`,
		r.cluster.Number, d.FirstSeq, d.LastSeq, d.FirstAt, d.LastAt).Scan(&there)
	if err != nil {
		return fmt.Errorf("look for the deltas of %s: %w", d.Day.Format(time.DateOnly), err)
	}
	if !there {
		return &MissingDayError{Day: d.Day, FirstSeq: d.FirstSeq, LastSeq: d.LastSeq, FirstAt: d.FirstAt, LastAt: d.LastAt}
	}
	r.mu.Lock()
	r.days[d.Day] = time.Now()
	r.mu.Unlock()
	return nil
}

// Days gives the days that hold seqs from one to another, oldest first.
func (r *Record) Days(ctx context.Context, fromSeq, toSeq int64) ([]Day, error) {
	return r.daysFrom(ctx, r.pool, fromSeq, toSeq)
}

// Present returns a *MissingDayError if the partition of a day is gone. That it was there may have been looked up a minute ago.
func (r *Record) Present(ctx context.Context, d Day) error { return r.present(ctx, r.pool, &d) }

// wholeSeq is the largest seq.
const wholeSeq = math.MaxInt64
