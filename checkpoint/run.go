package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Run makes a checkpoint whenever one is due, until ctx ends. It then returns nil. Run logs a failure and retries later.
// Without checkpoints, answers are the same, but slower.
func (m *Maker) Run(ctx context.Context) error {
	ticker := time.NewTicker(m.options.CheckEvery)
	defer ticker.Stop()
	for {
		if err := m.makeDue(ctx); err != nil && ctx.Err() == nil {
			m.options.Log.WarnContext(ctx, "no checkpoint was made; rebuilding takes longer until one is", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

func (m *Maker) makeDue(ctx context.Context) error {
	due, err := m.Due(ctx)
	if err != nil || !due {
		return err
	}
	if m.options.Hold() {
		m.options.Log.DebugContext(ctx, "a checkpoint is due; it waits until the living objects are stored again")
		return nil
	}
	info, err := m.MakeOne(ctx)
	if errors.Is(err, ErrNothingNew) {
		return nil // Two recorders may run until the former leader notices that the other one took over.
	}
	if err != nil {
		return err
	}
	m.options.Log.InfoContext(ctx, "made a checkpoint", "seq", info.Seq, "objects", info.Objects, "blocks", info.Blocks, "bytes", info.Bytes)
	return m.Prune(ctx)
}

// Due reports whether enough deltas came since the last checkpoint.
func (m *Maker) Due(ctx context.Context) (bool, error) {
	var since, live int64
	err := m.pool.QueryRow(ctx, `
		SELECT h.seq - coalesce(p.checkpoint, 0), coalesce(p.objects, 0)
		FROM kuberewind.record_heads h
		LEFT JOIN LATERAL (
			SELECT checkpoint, objects FROM kuberewind.record_checkpoints WHERE cluster = h.cluster ORDER BY checkpoint DESC LIMIT 1
		) p ON true
		WHERE h.cluster = $1`, m.cluster).Scan(&since, &live)
	if err != nil {
		return false, fmt.Errorf("check whether a checkpoint is due: %w", err)
	}
	every := m.options.EveryDeltas
	if every == 0 {
		every = Interval(live)
	}
	return since >= every, nil
}

// MakeOne makes a checkpoint of the end of the record, from the newest usable checkpoint and the later deltas. One
// transaction holds all of it. MakeOne reads everything back and compares it before it publishes the checkpoint. The error
// is ErrNothingNew, an error of the Source, or an error of the database.
func (m *Maker) MakeOne(ctx context.Context) (info Info, err error) {
	err = pgx.BeginTxFunc(ctx, m.pool, pgx.TxOptions{BeginQuery: beginMaking}, func(tx pgx.Tx) error {
		one := &builder{
			maker: m, store: Store{DB: tx, Cluster: m.cluster}, tx: tx, encoder: newEncoder(), copied: make(map[int32]bool),
		}
		info, err = one.run(ctx)
		return err
	})
	var refusal *pgconn.PgError
	if errors.As(err, &refusal) && refusal.Code == pgerrcode.UniqueViolation {
		err = ErrNothingNew
	}
	if err != nil {
		return Info{}, fmt.Errorf("make a checkpoint: %w", err)
	}
	return info, nil
}

// Prune deletes the checkpoints from before the oldest day of the record: no rebuild can use them. It keeps all others,
// because every rebuild between two of them would take longer.
func (m *Maker) Prune(ctx context.Context) error {
	err := pgx.BeginFunc(ctx, m.pool, func(tx pgx.Tx) error {
		var first *int64 // read once: a day may be dropped between the statements
		if err := tx.QueryRow(ctx, `SELECT min(first_seq) FROM kuberewind.record_days WHERE cluster = $1`, m.cluster).Scan(&first); err != nil {
			return err
		}
		for _, table := range []string{"checkpoints", "checkpoint_blocks"} {
			_, err := tx.Exec(ctx, `DELETE FROM kuberewind.`+table+` WHERE cluster = $1 AND checkpoint < $2`, m.cluster, first)
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("delete old checkpoints: %w", err)
	}
	return nil
}
