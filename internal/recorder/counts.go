package recorder

import (
	"context"

	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/sink/postgres"
	"github.com/kuberewind/kuberewind/timeline/activity"
)

// countAhead counts deltas for the timeline until ctx ends. It uses its own connections and its own role, so it cannot change the record
// and never delays it.
func (r *Recorder) countAhead(ctx context.Context) error {
	pool, err := postgres.NewCounterPool(ctx, r.env.database.URL(), activity.Session)
	if err != nil {
		return err
	}
	defer pool.Close()
	cluster := history.Cluster{Number: r.sink.Info().Cluster, Name: r.env.cluster.Name}
	return activity.NewCounter(pool, cluster, activity.Options{Log: r.env.log}).Run(ctx)
}
