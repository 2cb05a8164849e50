package recorder

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/kuberewind/kuberewind/deltafifo"
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
	// dormant makes a stream of one that is on record and not followed.
	dormant func(*postgres.Stream) *stream
	log     *slog.Logger

	idle []*stream // those that it made
}

// sweep runs the sweeper until ctx ends. What fails is tried again: days stay until their sweep is complete.
func (r *Recorder) sweep(ctx context.Context) error {
	s := &sweeper{sink: r.sink, queue: r.queue, now: r.now, streams: r.snapshot, dormant: r.dormantStream, log: r.log}
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
	if s.sink.Swept(now) {
		return nil
	}
	opened, err := s.sink.Dormant(ctx)
	for _, record := range opened {
		s.idle = append(s.idle, s.dormant(record))
	}
	if err != nil {
		return err
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
	followed := map[int32]bool{}
	for _, st := range s.streams() {
		followed[st.record.ID()] = true
		if err := s.resync(ctx, st, now); err != nil {
			return err
		}
	}
	for _, st := range s.idle {
		if followed[st.record.ID()] {
			continue
		}
		if err := s.resync(ctx, st, now); err != nil {
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
