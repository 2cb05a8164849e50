package recorder

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/kuberewind/kuberewind/deltafifo"
	"github.com/kuberewind/kuberewind/kube"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// sweepEvery is how often is looked whether the day has its sweep. Until it has, nothing of the day before may go; the first
// seconds of a day have most to sweep, and nobody waits for it.
const sweepEvery = time.Minute

// sweeper has each living object stored in each day (I8), whatever day it last changed, so that days can be dropped.
type sweeper struct {
	sink    *postgres.Sink
	queue   *deltafifo.Queue
	now     func() time.Time // the clock of the queue
	streams func() []*stream
	// open opens a stream of a resource that is on record and not followed.
	open   func(context.Context, kube.Resource) error
	opened bool // all of these, once: rules of redaction may have changed
	log    *slog.Logger
}

func (r *Recorder) newSweeper() *sweeper {
	return &sweeper{sink: r.sink, queue: r.queue, now: r.now, streams: r.snapshot, open: r.openDormant, log: r.log}
}

// sweep runs the sweeper until ctx ends. What fails is tried again: days stay until their sweep is complete.
func (r *Recorder) sweep(ctx context.Context) error {
	s := r.newSweeper()
	ticker := time.NewTicker(sweepEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		// Until all streams are open, objects of one that is not would be taken for those of a resource that is gone.
		if _, err := r.ready(); err != nil {
			continue
		}
		if err := s.round(ctx); err != nil && ctx.Err() == nil {
			r.log.Warn("living objects were not stored in this day; trying again", "error", err)
		}
	}
}

// round sends the keyframes that the day lacks, or, when it lacks none, has that put on record.
func (s *sweeper) round(ctx context.Context) error {
	now := s.now()
	if s.opened && s.sink.Swept(now) {
		return nil
	}
	dormant, err := s.sink.Dormant(ctx)
	if err != nil {
		return err
	}
	for _, d := range dormant {
		resource := kube.Resource{Group: d.Group, Version: d.Version, Name: d.Resource, Kind: d.Kind, Namespaced: d.Namespaced}
		if err := s.open(ctx, resource); err != nil {
			return err
		}
	}
	s.opened = true
	if s.sink.Swept(now) {
		return nil
	}
	lacking := s.sink.Unswept(now)
	if lacking.Waiting == 0 {
		s.sink.Complete(now)
		return nil
	}
	if lacking.Unfolded == lacking.Waiting {
		s.log.Warn("the record of some objects cannot be folded: until they change or are listed again, no day before this one can be dropped", "objects", lacking.Unfolded)
		return nil
	}
	for _, st := range s.streams() {
		// What is on disk is written first: a later round stores it again.
		if err := s.resync(ctx, st, now); err != nil && !errors.Is(err, deltafifo.ErrOnDisk) {
			return err
		}
	}
	return nil
}

// resync has a FIFO of its own, since that of a stream that was stopped is closed: both feed one stream of the queue.
func (s *sweeper) resync(ctx context.Context, st *stream, now time.Time) error {
	fifo := s.queue.FIFO(deltafifo.FIFOOptions{
		Stream: st, Name: st.name, KnownObjects: st.record.Known(),
		ResyncNeeded: func(known any) bool {
			object, ok := known.(postgres.KnownObject)
			return ok && object.NeedsKeyframe(now)
		},
	})
	defer fifo.Close()
	stop := context.AfterFunc(ctx, fifo.Close)
	defer stop()
	if err := fifo.Resync(); !errors.Is(err, cache.ErrFIFOClosed) {
		return err
	}
	return context.Cause(ctx)
}
