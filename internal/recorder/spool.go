package recorder

import (
	"context"
	"path/filepath"
	"time"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/deltafifo"
	"github.com/kuberewind/kuberewind/deltafifo/spool"
	"github.com/kuberewind/kuberewind/internal/spooling"
	"github.com/kuberewind/kuberewind/internal/times"
	"github.com/kuberewind/kuberewind/kube"
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
	return r.useSpool(ctx, o, owner)
}

// useSpool goes on from what is in the spool, and gives the spool to the queue.
func (r *Recorder) useSpool(ctx context.Context, o *deltafifo.Options, owner spooling.Owner) (seen time.Time, err error) {
	o.OnSpill = r.spool.Spilled
	o.Codec = spooling.Codec{Stream: func(resource kube.Resource) (spooling.Stream, error) {
		s, _, err := r.streamOf(ctx, resource, "")
		return s, err
	}}
	left, unreadable, err := r.spool.Resume(owner, r.sink.Info().Offset, o.Codec)
	if err != nil {
		return time.Time{}, err
	}
	if unreadable {
		for _, s := range r.snapshot() {
			s.excused(delta.CauseSpoolCorrupt)
		}
	}
	o.Spool = r.spool.Spool()
	if len(left) == 0 {
		return time.Time{}, nil
	}
	return r.goOnFrom(o, left), nil
}

// goOnFrom has the record and the streams go on from what is left of them in the spool.
func (r *Recorder) goOnFrom(o *deltafifo.Options, left map[spooling.Stream]*spooling.Leftover) (seen time.Time) {
	for _, l := range left {
		seen = times.Later(seen, l.At)
	}
	// Reading it may have taken minutes, of which nothing was seen either.
	r.sink.StartAfter(times.Later(seen, r.now()))
	info := r.sink.Info()
	r.clock.Raise(info.Started)
	o.Left = map[any]deltafifo.Spooled{}
	for of, l := range left {
		s := of.(*stream)
		if s.interrupted = l.Interrupted; l.Entries == 0 {
			continue // Nothing is of the stream, but its gap begins there.
		}
		s.left, s.since = l, info.Started
		if l.Rules != nil {
			s.listedUnder = *l.Rules
		}
		if s.record.Position() != "" {
			s.occurrence.resume(times.Later(l.At, info.Observed), info.Started)
		}
		o.Left[s] = l.Spooled
	}
	return seen
}

// spoolOffset is the spool's offset after the oldest entries.
func (r *Recorder) spoolOffset(entries int) postgres.Offset {
	return r.spool.Offset(r.queue.Offset(entries))
}
