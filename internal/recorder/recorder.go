package recorder

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kuberewind/kuberewind/deltafifo"
	"github.com/kuberewind/kuberewind/internal/clock"
	"github.com/kuberewind/kuberewind/internal/config"
	"github.com/kuberewind/kuberewind/internal/documents"
	"github.com/kuberewind/kuberewind/internal/election"
	"github.com/kuberewind/kuberewind/internal/notices"
	"github.com/kuberewind/kuberewind/internal/pump"
	"github.com/kuberewind/kuberewind/internal/resources"
	"github.com/kuberewind/kuberewind/internal/rollback"
	"github.com/kuberewind/kuberewind/internal/schemacheck"
	"github.com/kuberewind/kuberewind/internal/spooling"
	"github.com/kuberewind/kuberewind/internal/stream"
	"github.com/kuberewind/kuberewind/internal/succession"
	"github.com/kuberewind/kuberewind/internal/telemetry"
	"github.com/kuberewind/kuberewind/kube"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// EnvironmentError says that the cluster or the database cannot be used, before anything was recorded.
type EnvironmentError struct{ Err error }

func (e *EnvironmentError) Error() string { return e.Err.Error() }

func (e *EnvironmentError) Unwrap() error { return e.Err }

// Recorder records one cluster. Its fields are set before its goroutines begin, but for the follower: follow sets it before the
// first stream is opened.
type Recorder struct {
	env       surroundings
	election  *election.Election // nil before it has begun
	sink      *postgres.Sink
	queue     *deltafifo.Queue
	spool     *spooling.Folder
	streams   *stream.Set
	launcher  *stream.Launcher
	etcds     *rollback.Streams
	clock     *clock.Clock
	time      *clock.Keeper
	schemas   *schemacheck.Schemas
	documents *documents.Follower
	follower  *kube.Follower // of what is served, before the first stream
	before    before
	progress  progress
}

// progress is how far the recorder has come.
type progress struct {
	started   time.Time     // when the record was open, by its clock
	recording chan struct{} // closed when the streams of the start are settled
	allOpen   chan struct{} // closed when all streams with living objects on record are open
}

func newRecorder(cfg config.Config, log *slog.Logger) *Recorder {
	return &Recorder{
		env:     surroundings{cfg: cfg, log: log, metrics: telemetry.NewMetrics(), notices: notices.New(nil)},
		schemas: schemacheck.NewSchemas(), spool: &spooling.Folder{}, documents: documents.NewFollower(log),
		progress: progress{recording: make(chan struct{}), allOpen: make(chan struct{})},
	}
}

// Run records until ctx ends, then writes what is queued, within the drain timeout, and returns nil. It returns an
// EnvironmentError where it could not begin, and postgres.ErrFenced where another recorder has taken over.
func Run(ctx context.Context, cfg config.Config, log *slog.Logger) (err error) {
	r := newRecorder(cfg, log)
	defer func() { err = errors.Join(err, r.close()) }()
	if err := r.open(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return &EnvironmentError{err}
	}
	return r.run(ctx)
}

// run keeps the order of an end: the streams stop, the queue runs dry, the sink closes.
func (r *Recorder) run(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	// I7: what is queued when ctx ends is written with a context that outlives it.
	drain, abandon := context.WithCancelCause(context.WithoutCancel(ctx))
	defer abandon(nil)

	var g errgroup.Group
	g.Go(func() error {
		var keeper sync.WaitGroup
		kept, leave := context.WithCancel(drain)
		keeper.Go(func() { r.env.database.Keep(kept, r.env.reporter().Outdated) })
		keeper.Go(func() { spooling.SpillOverdue(kept, r.queue) })
		err := r.pump().Run(drain)
		leave()
		keeper.Wait()
		stop(err)
		return err
	})
	g.Go(func() error {
		err := r.follow(ctx)
		stop(err)
		r.queue.Close()
		r.env.log.Info("draining", "entries", r.queue.Stats().Entries, "timeout", r.env.cfg.DrainTimeout.String())
		limit := time.AfterFunc(r.env.cfg.DrainTimeout, func() {
			abandon(fmt.Errorf("what was queued could not be written within %s; it will be read from the API server again", r.env.cfg.DrainTimeout))
		})
		context.AfterFunc(drain, func() { limit.Stop() })
		return err
	})
	r.documents.Server, r.documents.Record, r.documents.Release = r.env.cluster.Client, r.sink, r.schemas.Release
	g.Go(func() error { return r.documents.Run(ctx) })
	g.Go(func() error {
		select {
		case <-ctx.Done():
			return nil
		case err := <-r.env.identity.Foreign():
			stop(err)
			return err
		}
	})
	g.Go(func() error {
		r.etcds.KeepProbing(ctx, r.env.log)
		return nil
	})
	g.Go(func() error {
		r.etcds.Measure(ctx, r.env.log)
		return nil
	})
	g.Go(func() error { return r.makeCheckpoints(ctx) })
	g.Go(func() error { return r.countAhead(ctx) })
	g.Go(func() error { return r.sweep(ctx) })
	g.Go(func() error { return r.newComparer().Run(ctx, r.env.readiness.synced.Load) })
	g.Go(func() error { return r.time.Run(ctx) })
	if r.election != nil {
		g.Go(func() error {
			// What is queued then is written if the record still takes it (I1).
			err := r.election.Keep(ctx, func(ctx context.Context) error { return succession.Fenced(ctx, r.sink, r.env.log) })
			stop(err)
			return err
		})
	}
	g.Go(func() error {
		r.env.notices.Follow(ctx, r.waiting)
		return nil
	})
	if r.env.server != nil {
		g.Go(func() error {
			err := r.env.server.wait(ctx)
			stop(err)
			return err
		})
	}
	err := g.Wait()
	if err == nil {
		r.env.log.Info("stopped")
	}
	return err
}

func (r *Recorder) pump() *pump.Pump {
	return &pump.Pump{
		Queue: r.queue, Sink: r.sink, Rows: r.env.cfg.BatchRows, Linger: r.env.cfg.Linger, Items: stream.Items, Offset: r.spool.Offset, Verified: r.etcds.Verified,
		Committed: func(entries []deltafifo.Entry) { stream.Committed(r.env.metrics, entries) },
	}
}

// follow runs the streams until ctx ends, and returns when all have stopped. The error is why a stream can never be recorded.
func (r *Recorder) follow(ctx context.Context) error {
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	h := resources.NewHandler(resources.Options{
		Streams: r.streams, Launcher: r.launcher, Prior: r.sink.Prior(), Client: r.env.cluster.Client, Rules: r.env.rules, Definitions: r.before.definitions,
		Documents: r.documents, Schemas: r.schemas, Opened: r.env.readiness.opened, GiveUp: giveUp, Log: r.env.log,
	})
	r.follower = kube.NewFollower(r.env.cluster.Client, h, kube.FollowerOptions{
		Recorded: r.before.recorded, Since: r.before.definitions, Created: r.before.unfollowed, Log: r.env.log, OnDiscovery: r.env.reporter().Discovered,
	})
	r.etcds.WhenAllAdded(r.follower.Synced())
	var g errgroup.Group
	g.Go(func() error {
		r.awaitStreams(ctx, r.follower.Synced())
		return nil
	})
	r.follower.Run(ctx)
	_ = g.Wait()
	r.streams.Halt()
	return h.Wait()
}

// awaitStreams says when the record is up to date.
func (r *Recorder) awaitStreams(ctx context.Context, announced <-chan struct{}) {
	select {
	case <-announced:
	case <-ctx.Done():
		return
	}
	streams := r.streams.All()
	for _, s := range streams {
		if s.Current() == nil {
			continue // It is in the spool only: its resource is not served, or left out, by now.
		}
		select {
		case <-s.Settled():
		case <-ctx.Done():
			return
		}
	}
	r.env.readiness.synced.Store(true)
	close(r.progress.recording)
	r.env.log.Info("recording", "streams", len(streams), "after", time.Since(r.progress.started).Round(time.Millisecond).String())
}

// close gives back what open took, as far as it came.
func (r *Recorder) close() error {
	if r.sink != nil {
		r.closeSink()
	}
	err := r.spool.Close()
	// From here on, another may record.
	if r.election != nil {
		r.election.Close()
	}
	return errors.Join(err, r.env.close())
}

// closeSinkTimeout bounds the goodbye to a database that does not answer: whoever sent SIGTERM has waited for the drain
// already, and the process ends with its connections.
const closeSinkTimeout = 2 * time.Second

func (r *Recorder) closeSink() {
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		r.sink.Close()
	}()
	timer := time.NewTimer(closeSinkTimeout)
	defer timer.Stop()
	select {
	case <-closed:
	case <-timer.C:
		r.env.log.Warn("the database did not take leave", "timeout", closeSinkTimeout.String())
	}
}

// waiting is for how long the oldest delta has waited for the database.
func (r *Recorder) waiting() time.Duration {
	stats := r.queue.Stats()
	return max(stats.OldestAge, stats.SpoolAge)
}
