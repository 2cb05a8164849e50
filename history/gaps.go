package history

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kuberewind/kuberewind/delta"
)

// A Gap is a period of a stream in which versions may have been missed.
type Gap struct {
	Number                                 int64
	Stream                                 *Stream
	Cause                                  delta.Cause
	Detail                                 string
	FromRV                                 string    // resource version up to which the stream was complete; "" if it never was
	FromAt                                 time.Time // when it was last complete; zero if it never was
	ToRV                                   string
	ToAt                                   time.Time // zero while open
	OpenedBatch                            int64
	ClosedBatch                            int64         // 0 while open
	Outcome                                delta.Outcome // resumed, relisted or equal; "" while open
	Appeared, Changed, Vanished, Unchanged int64
}

// Covers reports whether the stream was in this gap at that time. A stream that was never complete was in it from the
// start.
func (g *Gap) Covers(t time.Time) bool {
	return (g.FromAt.IsZero() || !t.Before(g.FromAt)) && (g.ToAt.IsZero() || t.Before(g.ToAt))
}

// gaps lists the gaps of the streams in a scope, by number.
func (v *view) gaps(ctx context.Context, scope Scope) ([]Gap, error) {
	streams, err := v.streamsIn(ctx, scope)
	if err != nil {
		return nil, err
	}
	byID, ids := make(map[int32]*Stream, len(streams)), make([]int32, 0, len(streams))
	for _, s := range streams {
		byID[s.ID], ids = s, append(ids, s.ID)
	}
	rows, err := v.db.Query(ctx, `
		SELECT gap, stream, cause, detail, coalesce(from_rv, ''), from_at, coalesce(to_rv, ''), to_at, opened_batch, coalesce(closed_batch, 0), coalesce(outcome, ''),
			coalesce(appeared, 0), coalesce(changed, 0), coalesce(vanished, 0), coalesce(unchanged, 0)
		FROM kuberewind.record_gaps WHERE cluster = $1 AND stream = ANY ($2) ORDER BY gap`, v.cluster.Number, ids)
	if err != nil {
		return nil, fmt.Errorf("read the gaps of the record: %w", err)
	}
	gaps, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (g Gap, err error) {
		var stream int32
		var fromAt, toAt *time.Time
		err = row.Scan(&g.Number, &stream, &g.Cause, &g.Detail, &g.FromRV, &fromAt, &g.ToRV, &toAt, &g.OpenedBatch, &g.ClosedBatch, &g.Outcome,
			&g.Appeared, &g.Changed, &g.Vanished, &g.Unchanged)
		g.Stream, g.FromAt, g.ToAt = byID[stream], timeOf(fromAt), timeOf(toAt)
		return g, err
	})
	if err != nil {
		return nil, fmt.Errorf("read the gaps of the record: %w", err)
	}
	return gaps, nil
}

// A Pause is a period in which no recorder ran.
type Pause struct {
	Epoch             int64 // epoch of the recorder that ended it
	From, To          time.Time
	AfterSeq          int64 // last seq before it
	Recorder, Version string
}

// pauses lists the pauses of the record, by time.
func (v *view) pauses(ctx context.Context) ([]Pause, error) {
	rows, err := v.db.Query(ctx, `
		SELECT p.epoch, p.from_at, p.to_at, p.after_seq, coalesce(e.recorder, ''), coalesce(e.version, '')
		FROM kuberewind.record_pauses p
		LEFT JOIN kuberewind.record_epochs e ON e.cluster = p.cluster AND e.epoch = p.epoch
		WHERE p.cluster = $1 ORDER BY p.epoch`, v.cluster.Number)
	if err != nil {
		return nil, fmt.Errorf("read the pauses of the record: %w", err)
	}
	pauses, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (p Pause, err error) {
		err = row.Scan(&p.Epoch, &p.From, &p.To, &p.AfterSeq, &p.Recorder, &p.Version)
		p.From, p.To = p.From.UTC(), p.To.UTC()
		return p, err
	})
	if err != nil {
		return nil, fmt.Errorf("read the pauses of the record: %w", err)
	}
	return pauses, nil
}

func timeOf(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}
