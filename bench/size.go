package main

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Sizes are bytes on disk: tables with what is stored beside them, and their indexes.
type Sizes struct {
	Deltas      int64 // rows, patches and keyframes
	Other       int64 // lives, batches, days and the like
	Checkpoints int64 // that were made at the default interval
	FullRows    int64
}

func sizesOf(ctx context.Context, db *pgxpool.Pool) (s Sizes, err error) {
	err = db.QueryRow(ctx, `
		SELECT coalesce(sum(size) FILTER (WHERE name ~ '^deltas_'), 0)::bigint, coalesce(sum(size) FILTER (WHERE name !~ '^(deltas|checkpoint)'), 0)::bigint,
			coalesce(sum(size) FILTER (WHERE name ~ '^checkpoint'), 0)::bigint, pg_total_relation_size('bench.full_rows')
		FROM (SELECT relname AS name, pg_total_relation_size(oid) AS size FROM pg_class WHERE relnamespace = 'kuberewind'::regnamespace AND relkind = 'r') AS tables`).
		Scan(&s.Deltas, &s.Other, &s.Checkpoints, &s.FullRows)
	if err != nil {
		return s, fmt.Errorf("sizes: %w", err)
	}
	return s, nil
}
