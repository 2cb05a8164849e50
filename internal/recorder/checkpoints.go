package recorder

import (
	"context"

	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// makeCheckpoints makes checkpoints until ctx ends, on one connection of its own: they are read and written beside the record, never in
// its way, and what fails is tried again.
func (r *Recorder) makeCheckpoints(ctx context.Context) error {
	if r.cfg.CheckpointEvery < 0 {
		return nil
	}
	pool, err := postgres.NewPool(ctx, r.database.URL(), history.CheckpointSession)
	if err != nil {
		return err
	}
	defer pool.Close()
	info := r.sink.Info()
	cluster := history.Cluster{Number: info.Cluster, Name: r.clusterName}
	return history.NewCheckpointer(pool, cluster, history.CheckpointOptions{EveryDeltas: int64(r.cfg.CheckpointEvery), Log: r.log}).Run(ctx)
}
