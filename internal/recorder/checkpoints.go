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
	// Until all streams are open, it is not known what has to be redacted anew.
	select {
	case <-r.recording:
	case <-ctx.Done():
		return nil
	}
	pool, err := postgres.NewPool(ctx, r.database.URL(), history.CheckpointSession)
	if err != nil {
		return err
	}
	defer pool.Close()
	info := r.sink.Info()
	cluster := history.Cluster{Number: info.Cluster, Name: r.clusterName}
	// I9: a checkpoint copies what lives, and would copy what the rules hide by now.
	hold := r.sink.Rewriting
	return history.NewCheckpointer(pool, cluster, history.CheckpointOptions{EveryDeltas: int64(r.cfg.CheckpointEvery), Hold: hold, Log: r.log}).Run(ctx)
}
