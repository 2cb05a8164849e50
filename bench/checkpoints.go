package main

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kuberewind/kuberewind/history"
)

// A checkpoints makes the checkpoints of a record. The recorder makes its first one after the first lists, and then one in each
// interval. In the smallest record there is one more between every two, so that intervals can be compared; settle puts
// those aside.
type checkpoints struct {
	maker   *history.Checkpointer
	admin   *pgxpool.Pool
	live    int64
	half    int64
	settled bool
}

func (b *bench) newCheckpoints(w *writer) *checkpoints {
	info := w.sink.Info()
	return &checkpoints{
		admin: w.admin, live: int64(b.Live), half: b.Interval / 2,
		maker: history.NewCheckpointer(w.pool, history.Cluster{Number: info.Cluster, Name: clusterName}, history.CheckpointOptions{
			EveryDeltas: b.Interval, Busy: 1, Now: w.sinkTime,
		}),
	}
}

func (c *checkpoints) cut(seq int64) bool {
	return !c.settled && seq >= c.live && (seq-c.live)%c.half == 0
}

func (c *checkpoints) after(ctx context.Context, seq int64) error {
	due := c.cut(seq)
	if c.settled {
		var err error
		if due, err = c.maker.Due(ctx); err != nil {
			return err
		}
	}
	if !due {
		return nil
	}
	if _, err := c.maker.MakeOne(ctx); err != nil {
		return fmt.Errorf("at seq %d: %w", seq, err)
	}
	if !c.settled {
		return nil
	}
	return c.maker.Prune(ctx)
}

// settle leaves the checkpoints that the recorder would have made, and keeps copies of the others.
func (c *checkpoints) settle(ctx context.Context) error {
	c.settled = true
	for _, table := range []string{"checkpoints", "checkpoint_blocks"} {
		if _, err := c.admin.Exec(ctx, `CREATE TABLE bench.`+table+` AS TABLE kuberewind.`+table); err != nil {
			return err
		}
	}
	if err := keep(ctx, c.admin, c.live, 2*c.half); err != nil {
		return err
	}
	return c.maker.Prune(ctx)
}

// keep leaves the checkpoints that an interval has.
func keep(ctx context.Context, db *pgxpool.Pool, first, interval int64) error {
	for _, table := range []string{"checkpoints", "checkpoint_blocks"} {
		if _, err := db.Exec(ctx, `TRUNCATE kuberewind.`+table); err != nil {
			return err
		}
		_, err := db.Exec(ctx, `INSERT INTO kuberewind.`+table+` SELECT * FROM bench.`+table+` WHERE (checkpoint - $1) % $2 = 0`, first, interval)
		if err != nil {
			return err
		}
	}
	return nil
}
