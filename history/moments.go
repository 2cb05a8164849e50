package history

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// A Moment is when a delta was observed.
type Moment struct {
	Seq int64
	At  time.Time
}

// Moments gives those of the next deltas after a seq, at most so many. It reads no objects. None at all means that the record ends there.
// A *MissingDayError says that the partition of the next ones is gone.
func (r *Record) Moments(ctx context.Context, after int64, most int) ([]Moment, error) {
	days, err := r.daysFrom(ctx, r.pool, after+1, wholeSeq)
	if err != nil {
		return nil, err
	}
	for i := range days {
		if err := r.present(ctx, r.pool, &days[i]); err != nil {
			return nil, err
		}
		if found, err := r.momentsIn(ctx, &days[i], after, most); len(found) > 0 || err != nil {
			return found, err
		}
	}
	return nil, nil
}

func (r *Record) momentsIn(ctx context.Context, d *day, after int64, most int) ([]Moment, error) {
	rows, err := r.pool.Query(ctx, `
		SELECT seq, observed_at FROM kuberewind.record_deltas
		WHERE cluster = $1 AND seq > $2 AND seq <= $3 AND observed_at BETWEEN $4 AND $5 ORDER BY seq LIMIT $6`,
		r.cluster.Number, after, d.lastSeq, d.firstAt, d.lastAt, most)
	if err != nil {
		return nil, fmt.Errorf("read when the deltas after seq %d were observed: %w", after, err)
	}
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (m Moment, err error) {
		err = row.Scan(&m.Seq, &m.At)
		m.At = m.At.UTC()
		return m, err
	})
	if err != nil {
		return nil, fmt.Errorf("read when the deltas after seq %d were observed: %w", after, err)
	}
	return found, nil
}
