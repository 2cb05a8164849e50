package history

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// A prunedDay is one that was dropped with deltas in it.
type prunedDay struct{ firstSeq, lastSeq int64 }

// prunedDays reads what is on record as dropped, oldest first.
func (r *Record) prunedDays(ctx context.Context, db querier) ([]prunedDay, error) {
	rows, err := db.Query(ctx, `
		SELECT first_seq, last_seq FROM kuberewind.record_prunes WHERE cluster = $1 AND first_seq IS NOT NULL ORDER BY first_seq`, r.cluster.Number)
	if err != nil {
		return nil, fmt.Errorf("read what was dropped of the record: %w", err)
	}
	days, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (d prunedDay, err error) {
		return d, row.Scan(&d.firstSeq, &d.lastSeq)
	})
	if err != nil {
		return nil, fmt.Errorf("read what was dropped of the record: %w", err)
	}
	return days, nil
}

// dropped checks that the dropped days are on record as dropped, from the first seq to the seq before the oldest that is left.
func (v *verification) dropped() error {
	left := v.extent.FirstSeq
	if left == 0 {
		left = v.extent.LastSeq + 1
	}
	expected := int64(1)
	for _, p := range append(v.prunes, prunedDay{firstSeq: left}) {
		if p.firstSeq > expected {
			if err := v.found(CheckSeq, expected, "seq %d to %d are not on record, and no prune says that they were dropped", expected, p.firstSeq-1); err != nil {
				return err
			}
		}
		if p.firstSeq < expected {
			if err := v.found(CheckSeq, p.firstSeq, "seq %d to %d were dropped, a prune says, and seq %d is on record", p.firstSeq, expected-1, p.firstSeq); err != nil {
				return err
			}
		}
		expected = p.lastSeq + 1
	}
	return nil
}
