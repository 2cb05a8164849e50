package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kuberewind/kuberewind/checkpoint"
	"github.com/kuberewind/kuberewind/history"
	scene "github.com/kuberewind/kuberewind/internal/scene/record"
)

// A checkpoints makes the checkpoints of a record: one after the first lists, then one in each interval. A checkpoint comes
// right after the delta that ends its interval, so that an instant is as far after its checkpoint in every record. The smallest
// record has one more between every two, to compare intervals; keepUsual puts those aside.
type checkpoints struct {
	maker    *checkpoint.Maker
	admin    *pgxpool.Pool
	live     int64
	interval int64
	every    int64 // deltas: half an interval, and a whole one after keepUsual
}

func (b *bench) newCheckpoints(w *writer) *checkpoints {
	info := w.sink.Info()
	return &checkpoints{
		admin: w.admin, live: int64(b.Live), interval: b.Interval, every: b.Interval / 2,
		maker: checkpoint.NewMaker(w.pool, info.Cluster, history.Of(w.pool, history.Cluster{Number: info.Cluster, Name: clusterName}).Source(), checkpoint.Options{Busy: 1, Now: w.sinkTime}),
	}
}

// due reports whether there is to be a checkpoint after a seq. A batch has to end with it.
func (c *checkpoints) due(seq int64) bool { return seq >= c.live && (seq-c.live)%c.every == 0 }

func (c *checkpoints) after(ctx context.Context, seq int64) error {
	if !c.due(seq) {
		return nil
	}
	if _, err := c.maker.MakeOne(ctx); err != nil {
		return fmt.Errorf("at seq %d: %w", seq, err)
	}
	return nil
}

// keepUsual copies all checkpoints to the schema bench, and keeps only those that the recorder would have made.
func (c *checkpoints) keepUsual(ctx context.Context) error {
	c.every = c.interval
	for _, table := range []string{"checkpoints", "checkpoint_blocks"} {
		if _, err := c.admin.Exec(ctx, `CREATE TABLE bench.`+table+` AS TABLE kuberewind.`+table); err != nil {
			return err
		}
	}
	return keep(ctx, c.admin, c.live, c.interval)
}

// keep removes all checkpoints except those of an interval.
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

// dueCheckpoints makes the checkpoints that a recorder would make of a record that has one cluster.
func dueCheckpoints(url string, pool *pgxpool.Pool) scene.Committed {
	var maker *checkpoint.Maker
	var now time.Time
	return func(ctx context.Context, at time.Time) error {
		now = at
		if maker == nil {
			clusters, err := history.Clusters(ctx, url)
			if err != nil {
				return err
			}
			maker = checkpoint.NewMaker(pool, clusters[0].Number, history.Of(pool, clusters[0]).Source(), checkpoint.Options{Busy: 1, Now: func() time.Time { return now }})
		}
		due, err := maker.Due(ctx)
		if err == nil && due {
			_, err = maker.MakeOne(ctx)
		}
		return err
	}
}
