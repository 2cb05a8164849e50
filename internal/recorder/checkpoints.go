package recorder

import (
	"context"

	"github.com/kuberewind/kuberewind/checkpoint"
	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// makeCheckpoints makes checkpoints until ctx ends. It uses its own connections, so that it never delays the record.
func (r *Recorder) makeCheckpoints(ctx context.Context) error {
	if r.env.cfg.CheckpointEvery < 0 {
		return nil
	}
	// I9: a checkpoint copies living objects as they are on record. They may hold values that newer rules hide. The sink knows that
	// only for open streams, so the first checkpoint waits until all streams are open.
	select {
	case <-r.progress.allOpen:
	case <-ctx.Done():
		return nil
	}
	pool, err := postgres.NewPool(ctx, r.env.database.URL(), checkpoint.Session)
	if err != nil {
		return err
	}
	defer pool.Close()
	info := r.sink.Info()
	cluster := history.Cluster{Number: info.Cluster, Name: r.env.cluster.Name}
	return checkpoint.NewMaker(pool, cluster.Number, history.Of(pool, cluster).Source(), checkpoint.Options{
		EveryDeltas: int64(r.env.cfg.CheckpointEvery), Hold: r.sink.Rewriting, Log: r.env.log.With("cluster", r.env.cluster.Name),
	}).Run(ctx)
}
