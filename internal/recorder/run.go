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
	"github.com/kuberewind/kuberewind/internal/config"
	"github.com/kuberewind/kuberewind/internal/pump"
	"github.com/kuberewind/kuberewind/internal/resources"
	"github.com/kuberewind/kuberewind/internal/spooling"
	"github.com/kuberewind/kuberewind/internal/stream"
	"github.com/kuberewind/kuberewind/internal/succession"
	"github.com/kuberewind/kuberewind/kube"
)

// EnvironmentError says that the recorder could not begin, so it recorded nothing.
type EnvironmentError struct{ Err error }

func (e *EnvironmentError) Error() string { return e.Err.Error() }

func (e *EnvironmentError) Unwrap() error { return e.Err }

// Run records until ctx ends. Then it writes the queued deltas, within the drain timeout, and returns nil. It returns an
// EnvironmentError if it cannot begin, and postgres.ErrFenced if another recorder has taken over.
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

// run starts the goroutines and waits for them. At the end, the streams stop first, then the pump drains the queue, then close closes
// the sink.
func (r *Recorder) run(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	// I7: entries that are queued when ctx ends are written with a context that outlives ctx.
	drain, abandon := context.WithCancelCause(context.WithoutCancel(ctx))
	defer abandon(nil)

	var g errgroup.Group
	g.Go(func() error {
		var keeper sync.WaitGroup
		kept, stopKeepers := context.WithCancel(drain)
		keeper.Go(func() { r.env.database.Keep(kept, r.env.reporter().Outdated) })
		keeper.Go(func() { spooling.SpillOverdue(kept, r.queue) })
		err := r.pump().Run(drain)
		stopKeepers()
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
			abandon(fmt.Errorf("the queued deltas could not be written within %s; the next start takes them from the spool, or from the API server if it still has them", r.env.cfg.DrainTimeout))
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
		r.rollbackStreams.KeepProbing(ctx, r.env.log)
		return nil
	})
	g.Go(func() error {
		r.rollbackStreams.Measure(ctx, r.env.log)
		return nil
	})
	g.Go(func() error { return r.makeCheckpoints(ctx) })
	g.Go(func() error { return r.countAhead(ctx) })
	g.Go(func() error { return r.sweep(ctx) })
	g.Go(func() error { return r.newComparer().Run(ctx, r.env.readiness.synced.Load) })
	g.Go(func() error { return r.time.Run(ctx) })
	if r.election != nil {
		g.Go(func() error {
			// I1: entries that are queued then are still written, if no other recorder has taken over the record.
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
		Queue: r.queue, Sink: r.sink, Rows: r.env.cfg.BatchRows, Linger: r.env.cfg.Linger, Items: stream.Items, Offset: r.spool.Offset, Verified: r.rollbackStreams.Verified,
		Committed: func(entries []deltafifo.Entry) { stream.Committed(r.env.metrics, entries) },
	}
}

// follow runs the streams until ctx ends, and returns when all have stopped. It returns an error if a stream can never be recorded.
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
	r.rollbackStreams.WhenAllAdded(r.follower.Synced())
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

// awaitStreams waits until each stream that discovery found at the start has started (Stream.Started). Then the recorder is ready
// and logs "recording".
func (r *Recorder) awaitStreams(ctx context.Context, announced <-chan struct{}) {
	select {
	case <-announced:
	case <-ctx.Done():
		return
	}
	streams := r.streams.All()
	for _, s := range streams {
		if s.Current() == nil {
			continue // Only the spool has entries of it: its resource is no longer served, or a rule excludes it now.
		}
		select {
		case <-s.Started():
		case <-ctx.Done():
			return
		}
	}
	r.env.readiness.synced.Store(true)
	close(r.progress.recording)
	r.env.log.Info("recording", "streams", len(streams), "after", time.Since(r.progress.started).Round(time.Millisecond).String())
}

// close closes the parts that open has made.
func (r *Recorder) close() error {
	if r.sink != nil {
		r.closeSink()
	}
	err := r.spool.Close()
	// From here on, another recorder may record.
	if r.election != nil {
		r.election.Close()
	}
	return errors.Join(err, r.env.close())
}

// closeSinkTimeout bounds the closing of connections to a database that does not answer. The drain has taken its time already, and the
// connections end with the process.
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
		r.env.log.Warn("closing the database connections timed out", "timeout", closeSinkTimeout.String())
	}
}

// waiting returns how long the oldest delta has waited for the database.
func (r *Recorder) waiting() time.Duration {
	stats := r.queue.Stats()
	return max(stats.OldestAge, stats.SpoolAge)
}
