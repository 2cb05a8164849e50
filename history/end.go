package history

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/kuberewind/kuberewind/delta"
)

// An End is the end of a record at one moment. All its fields come from one commit.
type End struct {
	Extent
	Pulse

	Streams []Stream
}

// End reads where the record ends, and up to where each stream is recorded.
func (c Commits) End(ctx context.Context) (e End, err error) {
	err = c.view.inSnapshot(ctx, func(v *view) (err error) {
		if e.Extent, err = v.extent(ctx); err != nil {
			return err
		}
		if e.Pulse, err = (Commits{view: v}).Pulse(ctx); err != nil {
			return err
		}
		set, err := v.readStreams(ctx)
		e.Streams = set.copies()
		return err
	})
	if err != nil {
		return End{}, fmt.Errorf("read where the record ends: %w", err)
	}
	return e, nil
}

// BatchAt returns the number of the last commit that has deltas, all of them at or before the seq. It is 0 if there is
// none.
func (c Commits) BatchAt(ctx context.Context, seq int64) (batch int64, err error) {
	err = c.view.db.QueryRow(ctx, `
		SELECT coalesce((
			SELECT b.batch FROM kuberewind.record_batches b
			WHERE b.cluster = $1 AND b.last_seq <= $2 AND b.first_seq <= b.last_seq ORDER BY b.last_seq DESC LIMIT 1), 0)`, c.view.cluster.Number, seq).Scan(&batch)
	if err != nil {
		return 0, fmt.Errorf("find the commit of seq %d: %w", seq, err)
	}
	return batch, nil
}

// A Relist is the end of a gap that a list closed. The stream's later deltas do not follow its earlier ones.
type Relist struct {
	Stream   int32
	Batch    int64  // the commit that closed the gap
	Seq      int64  // last delta of that commit; if it has none, the last delta of an earlier commit
	ToRV     string // resource version of the list
	Reversed bool   // the server's history was rolled back: ToRV may be lower than earlier versions
}

// Relists returns the relists of the commits after one number and up to another, in order.
func (c Commits) Relists(ctx context.Context, after, upTo int64) ([]Relist, error) {
	rows, err := c.view.db.Query(ctx, `
		SELECT g.stream, g.closed_batch, b.last_seq, coalesce(g.to_rv, ''), g.cause = $4
		FROM kuberewind.record_gaps g
		CROSS JOIN LATERAL (
			SELECT last_seq FROM kuberewind.record_batches
			WHERE cluster = g.cluster AND batch = g.closed_batch AND observed_at BETWEEN g.to_at AND g.to_at + interval '1 day'
		) b
		WHERE g.cluster = $1 AND g.closed_batch > $2 AND g.closed_batch <= $3 AND g.outcome <> $5
		ORDER BY g.closed_batch, g.gap`, c.view.cluster.Number, after, upTo, delta.CauseHistoryReversed, delta.OutcomeResumed)
	if err != nil {
		return nil, fmt.Errorf("read the ends of gaps: %w", err)
	}
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (e Relist, err error) {
		return e, row.Scan(&e.Stream, &e.Batch, &e.Seq, &e.ToRV, &e.Reversed)
	})
	if err != nil {
		return nil, fmt.Errorf("read the ends of gaps: %w", err)
	}
	return found, nil
}
