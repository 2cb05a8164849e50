package history

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kuberewind/kuberewind/checkpoint"
)

// querier is a pool, connection or transaction.
type querier interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// A view reads the basic tables of one cluster, either through the pool or within one transaction.
type view struct {
	pool    *pgxpool.Pool
	db      querier // the pool, or a transaction
	cluster Cluster
	streams *streamMemory
	days    *dayMemory
}

func newView(pool *pgxpool.Pool, cluster Cluster) *view {
	return &view{pool: pool, db: pool, cluster: cluster, streams: new(streamMemory), days: &dayMemory{found: make(map[time.Time]time.Time)}}
}

// in returns the view within a transaction.
func (v *view) in(tx pgx.Tx) *view {
	within := *v
	within.db = tx
	return &within
}

// inSnapshot calls read with a view of one state of the record.
func (v *view) inSnapshot(ctx context.Context, read func(v *view) error) error {
	return pgx.BeginTxFunc(ctx, v.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error { return read(v.in(tx)) })
}

func (v *view) extent(ctx context.Context) (e Extent, err error) {
	var firstSeq *int64
	var firstAt *time.Time
	var horizonSeq *int64
	var horizonAt *time.Time
	err = v.db.QueryRow(ctx, `
		SELECT h.seq, h.observed_at, d.first_seq, d.first_at, z.seq, z.observed_at
		FROM kuberewind.record_heads h
		LEFT JOIN LATERAL (
			SELECT first_seq, first_at FROM kuberewind.record_days WHERE cluster = h.cluster ORDER BY first_seq LIMIT 1
		) d ON true
		LEFT JOIN kuberewind.record_horizons z ON z.cluster = h.cluster
		WHERE h.cluster = $1`, v.cluster.Number).Scan(&e.LastSeq, &e.LastAt, &firstSeq, &firstAt, &horizonSeq, &horizonAt)
	if err != nil {
		return e, fmt.Errorf("read the extent of the record: %w", err)
	}
	if firstSeq != nil {
		e.FirstSeq, e.FirstAt = *firstSeq, firstAt.UTC()
		e.WholeSeq, e.WholeAt = e.FirstSeq, e.FirstAt
	}
	if horizonSeq != nil {
		e.Pruned, e.WholeSeq, e.WholeAt = true, *horizonSeq, horizonAt.UTC()
	}
	e.LastAt = e.LastAt.UTC()
	return e, nil
}

func (v *view) checkpoints() checkpoint.Store {
	return checkpoint.Store{DB: v.db, Cluster: v.cluster.Number}
}
