package sweep

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

// sweepEvery is how often the sweeper checks whether the day is swept. No earlier day can be dropped before that.
const sweepEvery = time.Minute

// Stream is an open stream. The queue identifies the stream by it.
type Stream interface {
	Name() string
	Known() cache.KeyListerGetter // the objects on record
}

// Sweeper stores each living object in each day (I8), even if it has not changed, so that earlier days can be dropped.
type Sweeper struct {
	Sink    *postgres.Sink
	Queue   *deltafifo.Queue
	Now     func() time.Time // the clock of the queue
	Streams func() []Stream
	// Open opens a dormant stream. Such a stream has living objects on record, but the recorder does not follow its resource.
	Open   func(context.Context, kube.Resource) error
	Opened chan struct{} // Round closes it when all streams with living objects on record are open
	Log    *slog.Logger
}

// Run sweeps until ctx ends. It logs a failure and retries. Until the sweep is complete, no earlier day can be dropped.
func (s *Sweeper) Run(ctx context.Context) error {
	ticker := time.NewTicker(sweepEvery)
	defer ticker.Stop()
	for {
		if err := s.Round(ctx); err != nil && ctx.Err() == nil {
			s.Log.Warn("the daily sweep of living objects failed; retrying", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// Round sends the keyframes that are missing in the day. If none is missing, Round records that the day is complete.
func (s *Sweeper) Round(ctx context.Context) error {
	now := s.Now()
	rejected, err := s.openAll(ctx)
	if err != nil {
		return errors.Join(rejected, err)
	}
	if rejected == nil && s.Sink.Swept(now) {
		return nil
	}
	if lacking := s.Sink.Unswept(now); lacking.Waiting > 0 {
		return errors.Join(rejected, s.store(ctx, now, lacking))
	}
	if rejected == nil { // I8: the sink counts the objects of open streams only.
		s.Sink.CompleteSweep(now)
	}
	return rejected
}

// openAll opens the dormant streams, once. It skips streams that the database rejects, and returns their errors in rejected.
func (s *Sweeper) openAll(ctx context.Context) (rejected, err error) {
	select {
	case <-s.Opened:
		return nil, nil
	default:
	}
	dormant, err := s.Sink.Dormant(ctx)
	if err != nil {
		return nil, err
	}
	for _, d := range dormant {
		resource := kube.Resource{Group: d.Group, Version: d.Version, Name: d.Resource, Kind: d.Kind, Namespaced: d.Namespaced}
		switch err := s.Open(ctx, resource); {
		case err == nil:
		case postgres.ClassOf(err) == postgres.Rejected:
			rejected = errors.Join(rejected, fmt.Errorf("until %s can be opened, no further day can be dropped and no checkpoint is made: %w", resource.GroupResource(), err))
		default:
			return rejected, err
		}
	}
	if rejected == nil {
		close(s.Opened)
	}
	return rejected, nil
}

// store sends the objects of the open streams that have no row in the day.
func (s *Sweeper) store(ctx context.Context, now time.Time, lacking postgres.Progress) error {
	if lacking.Unfolded == lacking.Waiting {
		s.Log.Warn("some recorded objects cannot be rebuilt: until they change or are listed again, no day before this one can be dropped", "objects", lacking.Unfolded)
		return nil
	}
	for _, st := range s.Streams() {
		// If entries of the stream are on disk, they must be written first. A later round stores its objects.
		if err := s.resync(ctx, st, now); err != nil && !errors.Is(err, deltafifo.ErrOnDisk) {
			return err
		}
	}
	return nil
}

// resync sends the objects of a stream that need a keyframe. It uses a new FIFO, because the FIFO of a stopped stream is closed. Both FIFOs
// feed the same stream of the queue.
func (s *Sweeper) resync(ctx context.Context, st Stream, now time.Time) error {
	fifo := s.Queue.FIFO(deltafifo.FIFOOptions{
		Stream: st, Name: st.Name(), KnownObjects: st.Known(),
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
