package history

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kuberewind/kuberewind/delta"
)

// A Moment is the time at which a delta was observed, or at which a gap ended with a list that brought no delta.
type Moment struct {
	Seq   int64 // of the delta, or of the last delta before the end of the gap
	At    time.Time
	Batch int64 // the commit that ended the gap; 0 for a delta
}

// Moments returns the next moments after another one: of up to `most` deltas, and of the ends of gaps between them. It reads
// no objects. An empty result means that the record ends there. A *MissingDayError says that the partition of the next
// deltas is gone.
func (t Timeline) Moments(ctx context.Context, after Moment, most int) ([]Moment, error) {
	found, err := t.deltaMoments(ctx, after.Seq, most)
	if err != nil {
		return nil, err
	}
	upTo := int64(maxSeq)
	if len(found) > 0 {
		upTo = found[len(found)-1].Seq
	}
	ends, err := t.endMoments(ctx, after, upTo)
	if err != nil {
		return nil, err
	}
	found = append(found, ends...)
	slices.SortStableFunc(found, func(a, b Moment) int { return cmp.Compare(a.Seq, b.Seq) })
	return found, nil
}

// EndedBy returns the last commit that ended a gap by a time, among the commits after a seq and before the next delta. It
// is 0 if there is none.
func (t Timeline) EndedBy(ctx context.Context, seq int64, at time.Time) (batch int64, err error) {
	ends, err := t.endMoments(ctx, Moment{Seq: seq}, seq)
	for _, end := range ends {
		if !end.At.After(at) {
			batch = end.Batch
		}
	}
	return batch, err
}

// endMoments returns the ends of gaps whose lists brought no delta, in order.
func (t Timeline) endMoments(ctx context.Context, after Moment, upTo int64) ([]Moment, error) {
	rows, err := t.view.db.Query(ctx, `
		SELECT b.last_seq, g.to_at, g.closed_batch FROM kuberewind.record_gaps g
		CROSS JOIN LATERAL (
			SELECT first_seq, last_seq FROM kuberewind.record_batches
			WHERE cluster = g.cluster AND batch = g.closed_batch AND observed_at BETWEEN g.to_at AND g.to_at + interval '1 day'
		) b
		WHERE g.cluster = $1 AND g.closed_batch > $2 AND g.outcome <> $5 AND b.first_seq > b.last_seq AND b.last_seq BETWEEN $3 AND $4
		ORDER BY g.closed_batch`, t.view.cluster.Number, after.Batch, after.Seq, upTo, delta.OutcomeResumed)
	if err != nil {
		return nil, fmt.Errorf("read the ends of gaps after seq %d: %w", after.Seq, err)
	}
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (m Moment, err error) {
		err = row.Scan(&m.Seq, &m.At, &m.Batch)
		m.At = m.At.UTC()
		return m, err
	})
	if err != nil {
		return nil, fmt.Errorf("read the ends of gaps after seq %d: %w", after.Seq, err)
	}
	return found, nil
}

// deltaMoments returns the moments of the next deltas.
func (t Timeline) deltaMoments(ctx context.Context, after int64, most int) ([]Moment, error) {
	days, err := t.view.daysFrom(ctx, after+1, maxSeq)
	if err != nil {
		return nil, err
	}
	for i := range days {
		if err := t.view.present(ctx, &days[i]); err != nil {
			return nil, err
		}
		if found, err := t.momentsIn(ctx, &days[i], after, most); len(found) > 0 || err != nil {
			return found, err
		}
	}
	return nil, nil
}

func (t Timeline) momentsIn(ctx context.Context, d *Day, after int64, most int) ([]Moment, error) {
	rows, err := t.view.db.Query(ctx, `
		SELECT seq, observed_at FROM kuberewind.record_deltas
		WHERE cluster = $1 AND seq > $2 AND seq <= $3 AND observed_at BETWEEN $4 AND $5 ORDER BY seq LIMIT $6`,
		t.view.cluster.Number, after, d.LastSeq, d.FirstAt, d.LastAt, most)
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
