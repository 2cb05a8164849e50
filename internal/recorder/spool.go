package recorder

import (
	"context"
	"time"

	"github.com/kuberewind/kuberewind/deltafifo"
	"github.com/kuberewind/kuberewind/deltafifo/spool"
	"github.com/kuberewind/kuberewind/internal/spooling"
)

// openSpool opens the spool of the cluster and adds it to the queue's options, together with the entries of an earlier recorder. It
// returns the time of the last of these entries.
func (r *Recorder) openSpool(ctx context.Context, o *deltafifo.Options, owner spooling.Owner) (seen time.Time, err error) {
	size, err := r.env.cfg.SpoolBytes()
	if err != nil {
		return time.Time{}, err
	}
	r.spool = &spooling.Folder{Options: spool.Options{Dir: r.env.spoolDir(), MaxBytes: size}, Log: r.env.log, Metrics: r.env.metrics}
	if err := r.spool.Open(ctx); err != nil {
		return time.Time{}, err
	}
	return r.streams.Resume(ctx, r.spool, owner, o, r.clock)
}
