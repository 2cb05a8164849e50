package recorder

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/kuberewind/kuberewind/deltafifo"
	"github.com/kuberewind/kuberewind/kube"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// sweepEvery is how often the sweeper looks whether the day has its sweep. No earlier day can be dropped before that.
const sweepEvery = time.Minute

// sweeper has each living object stored in each day (I8), whatever day it last changed, so that days can be dropped.
type sweeper struct {
	sink    *postgres.Sink
	queue   *deltafifo.Queue
	now     func() time.Time // the clock of the queue
	streams func() []*stream
	// open opens a dormant stream: it has living objects on record, and the recorder does not follow its resource.
	open   func(context.Context, kube.Resource) error
	opened chan struct{} // closed when all streams with living objects on record are open
	log    *slog.Logger
}

func (r *Recorder) newSweeper() *sweeper {
	return &sweeper{sink: r.sink, queue: r.queue, now: r.now, streams: r.snapshot, open: r.openDormant, opened: r.allOpen, log: r.log}
}

// sweep runs the sweeper until ctx ends. It logs a failure and tries again: days stay until their sweep is complete.
func (r *Recorder) sweep(ctx context.Context) error {
	// The API server says first which streams are followed, and in which version.
	select {
	case <-r.recording:
	case <-ctx.Done():
		return nil
	}
	s := r.newSweeper()
	ticker := time.NewTicker(sweepEvery)
	defer ticker.Stop()
	for {
		if err := s.round(ctx); err != nil && ctx.Err() == nil {
			r.log.Warn("living objects were not stored in this day; trying again", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// round sends the keyframes that the day lacks. If it lacks none, round has that put on record.
func (s *sweeper) round(ctx context.Context) error {
	now := s.now()
	rejected, err := s.openAll(ctx)
	if err != nil {
		return errors.Join(rejected, err)
	}
	if rejected == nil && s.sink.Swept(now) {
		return nil
	}
	if lacking := s.sink.Unswept(now); lacking.Waiting > 0 {
		return errors.Join(rejected, s.store(ctx, now, lacking))
	}
	if rejected == nil { // I8: the sink counts the objects of open streams only.
		s.sink.Complete(now)
	}
	return rejected
}

// openAll opens the dormant streams, once. It passes over those that the database rejects, and returns why.
func (s *sweeper) openAll(ctx context.Context) (rejected, err error) {
	select {
	case <-s.opened:
		return nil, nil
	default:
	}
	dormant, err := s.sink.Dormant(ctx)
	if err != nil {
		return nil, err
	}
	for _, d := range dormant {
		resource := kube.Resource{Group: d.Group, Version: d.Version, Name: d.Resource, Kind: d.Kind, Namespaced: d.Namespaced}
		switch err := s.open(ctx, resource); {
		case err == nil:
		case postgres.ClassOf(err) == postgres.Rejected:
			rejected = errors.Join(rejected, fmt.Errorf("until %s can be opened, no further day can be dropped and no checkpoint is made: %w", resource.GroupResource(), err))
		default:
			return rejected, err
		}
	}
	if rejected == nil {
		close(s.opened)
	}
	return rejected, nil
}

// store sends the objects of the open streams that have no row in the day.
func (s *sweeper) store(ctx context.Context, now time.Time, lacking postgres.Progress) error {
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

// resync has a FIFO of its own, because that of a stopped stream is closed. Both feed one stream of the queue.
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
