package recorder

import (
	"context"
	"path/filepath"
	"time"

	"github.com/kuberewind/kuberewind/deltafifo"
	"github.com/kuberewind/kuberewind/deltafifo/spool"
	"github.com/kuberewind/kuberewind/internal/spooling"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

func (r *Recorder) spoolDir(clusterUID string) string {
	return filepath.Join(r.cfg.Spool(), clusterUID)
}

// openSpool opens the spool of the cluster and adds it to the queue's options, with what an earlier recorder has left in it. Seen is
// the time of the last entry there.
func (r *Recorder) openSpool(ctx context.Context, o *deltafifo.Options, owner spooling.Owner) (seen time.Time, err error) {
	size, err := r.cfg.SpoolBytes()
	if err != nil {
		return time.Time{}, err
	}
	r.spool = &spooling.Folder{Options: spool.Options{Dir: r.spoolDir(owner.Cluster), MaxBytes: size}, Log: r.log, Metrics: r.metrics.Metrics}
	if err := r.spool.Open(ctx); err != nil {
		return time.Time{}, err
	}
	return r.streams.Resume(ctx, r.spool, owner, o, r.clock)
}

// spoolOffset is the spool's offset after the oldest entries.
func (r *Recorder) spoolOffset(entries int) postgres.Offset {
	return r.spool.Offset(r.queue.Offset(entries))
}
