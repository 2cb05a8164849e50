package history

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/kuberewind/kuberewind/checkpoint"
)

// A Survey describes a record at one moment. All its fields come from one commit. Its gaps may omit a
// stream of the last second.
type Survey struct {
	Extent

	Streams     []Stream
	Gaps        []Gap
	Days        []Day             // oldest first
	Prunes      []Prune           // oldest first
	Checkpoints []checkpoint.Info // oldest first
	Partitions  []Partition       // of the deltas of all clusters
}

// A Prune is a day that was dropped with its deltas.
type Prune struct{ FirstSeq, LastSeq int64 }

// A Partition is a partition of the table of deltas.
type Partition struct {
	Name  string
	Bound string // as PostgreSQL prints it, in UTC
}

// Survey reads a description of the record.
func (r *Record) Survey(ctx context.Context) (s Survey, err error) {
	err = r.view.inSnapshot(ctx, func(v *view) (err error) {
		if s.Extent, err = v.extent(ctx); err != nil {
			return err
		}
		set, err := v.readStreams(ctx)
		if err != nil {
			return err
		}
		s.Streams = set.copies()
		if s.Gaps, err = v.gaps(ctx, Scope{}); err != nil {
			return err
		}
		if s.Days, err = v.daysFrom(ctx, 0, maxSeq); err != nil {
			return err
		}
		if s.Checkpoints, err = v.checkpoints().List(ctx, s.LastSeq, maxSeq); err != nil {
			return err
		}
		slices.Reverse(s.Checkpoints)
		if s.Prunes, err = prunes(ctx, v); err != nil {
			return err
		}
		s.Partitions, err = partitions(ctx, v.db)
		return err
	})
	return s, err
}

func prunes(ctx context.Context, v *view) ([]Prune, error) {
	rows, err := v.db.Query(ctx, `
		SELECT first_seq, last_seq FROM kuberewind.record_prunes WHERE cluster = $1 AND first_seq IS NOT NULL ORDER BY first_seq`, v.cluster.Number)
	if err != nil {
		return nil, fmt.Errorf("read the prunes of the record: %w", err)
	}
	prunes, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Prune])
	if err != nil {
		return nil, fmt.Errorf("read the prunes of the record: %w", err)
	}
	return prunes, nil
}

func partitions(ctx context.Context, db querier) ([]Partition, error) {
	rows, err := db.Query(ctx, `
		SELECT c.relname, coalesce(pg_catalog.pg_get_expr(c.relpartbound, c.oid), '')
		FROM pg_catalog.pg_inherits i JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid
		WHERE i.inhparent = 'kuberewind.deltas_data'::regclass ORDER BY c.relname`)
	if err != nil {
		return nil, fmt.Errorf("list the partitions: %w", err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Partition])
	if err != nil {
		return nil, fmt.Errorf("list the partitions: %w", err)
	}
	return found, nil
}
