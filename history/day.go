package history

import (
	"context"
	"fmt"
	"iter"
	"math"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// A Day describes the partition of one UTC day of observed_at: the deltas of this cluster in it.
type Day struct {
	Day               time.Time // its midnight
	FirstSeq, LastSeq int64
	FirstAt, LastAt   time.Time // of observed_at
}

func (d *Day) holds(seq int64) bool { return seq >= d.FirstSeq && seq <= d.LastSeq }

// dayFresh is how long a found partition counts as present.
const dayFresh = time.Minute

// daysFrom returns the days that hold seqs of a range, oldest first.
func (v *view) daysFrom(ctx context.Context, fromSeq, toSeq int64) ([]Day, error) {
	rows, err := v.db.Query(ctx, `
		SELECT day, first_seq, last_seq, first_at, last_at FROM kuberewind.record_days
		WHERE cluster = $1 AND last_seq >= $2 AND first_seq <= $3 ORDER BY first_seq`, v.cluster.Number, fromSeq, toSeq)
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

// present returns a *MissingDayError if the day's partition is gone. Without this check, a query would find nothing in it
// and report no error.
func (v *view) present(ctx context.Context, d *Day) error {
	if v.days.fresh(d.Day) {
		return nil
	}
	var there bool
	err := v.db.QueryRow(ctx, `
		SELECT EXISTS (SELECT FROM kuberewind.record_deltas WHERE cluster = $1 AND seq BETWEEN $2 AND $3 AND observed_at BETWEEN $4 AND $5)`,
		v.cluster.Number, d.FirstSeq, d.LastSeq, d.FirstAt, d.LastAt).Scan(&there)
	if err != nil {
		return fmt.Errorf("look for the deltas of %s: %w", d.Day.Format(time.DateOnly), err)
	}
	if !there {
		return &MissingDayError{Day: d.Day, FirstSeq: d.FirstSeq, LastSeq: d.LastSeq, FirstAt: d.FirstAt, LastAt: d.LastAt}
	}
	v.days.keep(d.Day)
	return nil
}

// A dayMemory remembers which partitions were present.
type dayMemory struct {
	mu    sync.Mutex              // protects found
	found map[time.Time]time.Time // by day, when its partition was last found
}

func (m *dayMemory) fresh(day time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return time.Since(m.found[day]) < dayFresh
}

func (m *dayMemory) keep(day time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.found[day] = time.Now()
}

// Days reads the partitions of the deltas.
type Days struct{ view *view }

// Days returns the reader of the partitions of the deltas.
func (r *Record) Days() Days { return Days{view: r.view} }

// List returns the days that hold seqs of a range, oldest first.
func (s Days) List(ctx context.Context, fromSeq, toSeq int64) ([]Day, error) {
	return s.view.daysFrom(ctx, fromSeq, toSeq)
}

// Present returns a *MissingDayError if the partition of a day is gone. It may answer from a lookup of the last minute.
func (s Days) Present(ctx context.Context, d Day) error { return s.view.present(ctx, &d) }

// Rows yields all rows in the partition of a UTC day up to a seq, in order, regardless of the table of days. If the
// partition is gone, it yields none.
func (s Days) Rows(ctx context.Context, midnight time.Time, upTo int64) iter.Seq2[[]Row, error] {
	return func(yield func([]Row, error) bool) {
		whole := Day{Day: midnight, LastSeq: upTo, FirstAt: midnight, LastAt: midnight.AddDate(0, 0, 1).Add(-time.Microsecond)}
		g := &deltaReader{view: s.view, q: Query{ToSeq: upTo}, limit: firstBatch}
		g.read(ctx, &whole, whole.FirstAt, whole.LastAt, yield)
	}
}

// maxSeq is the largest seq.
const maxSeq = math.MaxInt64
