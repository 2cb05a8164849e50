package recorder

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kuberewind/kuberewind/deltafifo"
	"github.com/kuberewind/kuberewind/internal/clock"
	"github.com/kuberewind/kuberewind/internal/cluster"
	"github.com/kuberewind/kuberewind/internal/config"
	"github.com/kuberewind/kuberewind/internal/database"
	"github.com/kuberewind/kuberewind/internal/documents"
	"github.com/kuberewind/kuberewind/internal/election"
	"github.com/kuberewind/kuberewind/internal/filter"
	"github.com/kuberewind/kuberewind/internal/notices"
	"github.com/kuberewind/kuberewind/internal/resources"
	"github.com/kuberewind/kuberewind/internal/rollback"
	"github.com/kuberewind/kuberewind/internal/schemacheck"
	"github.com/kuberewind/kuberewind/internal/spooling"
	"github.com/kuberewind/kuberewind/internal/stream"
	"github.com/kuberewind/kuberewind/internal/telemetry"
	"github.com/kuberewind/kuberewind/kube"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// EnvironmentError says that the cluster or the database cannot be used, before anything was recorded.
type EnvironmentError struct{ Err error }

func (e *EnvironmentError) Error() string { return e.Err.Error() }

func (e *EnvironmentError) Unwrap() error { return e.Err }

// Recorder records one cluster.
type Recorder struct {
	cfg       config.Config
	log       *slog.Logger
	metrics   *metrics
	cluster   *cluster.Cluster
	client    *kube.Client
	database  *database.Database
	sink      *postgres.Sink
	queue     *deltafifo.Queue
	spool     *spooling.Folder
	rules     *filter.Filter
	streams   *stream.Set
	launcher  *stream.Launcher
	etcds     *rollback.Streams
	election  *election.Election // nil before it has begun
	notices   *notices.Notices
	http      *telemetry.Server // nil where nothing is to be served
	served    chan struct{}     // closed when http has ended, with serving saying why
	serving   error
	identity  *cluster.Identity
	follower  *kube.Follower // of what is served, before the first stream
	schemas   *schemacheck.Schemas
	documents *documents.Follower
	started   time.Time
	clock     *clock.Clock
	time      *clock.Keeper
	// clusterName is the one under which the cluster is on record.
	clusterName string
	before      before
	readiness   readiness

	unlock    func() error
	recording chan struct{} // closed when synced
	allOpen   chan struct{} // closed when all streams with living objects on record are open
}

// before is what a recorder before this one has left on record about resources.
type before struct {
	// definitions is the resource version up to which CustomResourceDefinitions were recorded when this recorder began.
	definitions string
	// recorded are the resources that were followed before it.
	recorded []kube.Resource
	// unfollowed is, by UID, with which resource version a definition was created whose resource was to be followed before it, and was not yet.
	unfollowed map[types.UID]string
}

func newRecorder(cfg config.Config, log *slog.Logger) *Recorder {
	return &Recorder{
		cfg: cfg, log: log, schemas: schemacheck.NewSchemas(), spool: &spooling.Folder{}, notices: notices.New(nil), documents: documents.NewFollower(log),
		recording: make(chan struct{}), allOpen: make(chan struct{}),
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
		keeper.Go(func() { r.database.Keep(kept, r.metrics.outdated) })
		keeper.Go(func() { spooling.SpillOverdue(kept, r.queue) })
		err := r.pump().run(drain)
		leave()
		keeper.Wait()
		stop(err)
		return err
	})
	g.Go(func() error {
		err := r.follow(ctx)
		stop(err)
		r.queue.Close()
		r.log.Info("draining", "entries", r.queue.Stats().Entries, "timeout", r.cfg.DrainTimeout.String())
		limit := time.AfterFunc(r.cfg.DrainTimeout, func() {
			abandon(fmt.Errorf("what was queued could not be written within %s; it will be read from the API server again", r.cfg.DrainTimeout))
		})
		context.AfterFunc(drain, func() { limit.Stop() })
		return err
	})
	r.documents.Server, r.documents.Record, r.documents.Release = r.client, r.sink, r.schemas.Release
	g.Go(func() error { return r.documents.Run(ctx) })
	g.Go(func() error {
		select {
		case <-ctx.Done():
			return nil
		case err := <-r.identity.Foreign():
			stop(err)
			return err
		}
	})
	g.Go(func() error {
		r.etcds.Follow(ctx, r.log)
		return nil
	})
	g.Go(func() error {
		r.etcds.Measure(ctx, r.log)
		return nil
	})
	g.Go(func() error { return r.makeCheckpoints(ctx) })
	g.Go(func() error { return r.countAhead(ctx) })
	g.Go(func() error { return r.sweep(ctx) })
	g.Go(func() error { return r.newComparer().Run(ctx, r.readiness.synced.Load) })
	g.Go(func() error { return r.time.Run(ctx) })
	if r.election != nil {
		g.Go(func() error {
			// What is queued then is written if the record still takes it (I1).
			err := r.election.Keep(ctx, r.fenced)
			stop(err)
			return err
		})
	}
	g.Go(func() error {
		r.notices.Follow(ctx, r.waiting)
		return nil
	})
	if r.http != nil {
		g.Go(func() error {
			err := r.keepServing(ctx)
			stop(err)
			return err
		})
	}
	err := g.Wait()
	if err == nil {
		r.log.Info("stopped")
	}
	return err
}

func (r *Recorder) pump() *pump {
	return &pump{queue: r.queue, sink: r.sink, rows: r.cfg.BatchRows, linger: r.cfg.Linger, offset: r.spoolOffset, committed: func(entries []deltafifo.Entry) { stream.Committed(r.metrics.Metrics, entries) }}
}

// listen serves until close: a standby is asked for its state, too.
func (r *Recorder) listen() (err error) {
	if r.cfg.Listen == "" {
		return nil
	}
	healthy := func() (string, error) { return "ok", nil }
	if r.http, err = telemetry.Listen(r.cfg.Listen, r.metrics.Metrics, healthy, r.readiness.state); err != nil {
		return err
	}
	r.log.Info("serving /metrics, /healthz and /readyz", "address", r.http.Address())
	r.served = make(chan struct{})
	go func() {
		defer close(r.served)
		r.serving = r.http.Serve(context.Background())
	}()
	return nil
}

// keepServing returns when ctx or the serving ends.
func (r *Recorder) keepServing(ctx context.Context) error {
	select {
	case <-r.served:
		return r.serving
	case <-ctx.Done():
		return nil
	}
}

// follow runs the streams until ctx ends, and returns when all have stopped. The error is why a stream can never be recorded.
func (r *Recorder) follow(ctx context.Context) error {
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	h := resources.NewHandler(resources.Options{
		Streams: r.streams, Launcher: r.launcher, Prior: r.sink.Prior(), Client: r.client, Rules: r.rules, Definitions: r.before.definitions,
		Documents: r.documents, Schemas: r.schemas, Opened: r.readiness.opened, GiveUp: giveUp, Log: r.log,
	})
	r.follower = kube.NewFollower(r.client, h, kube.FollowerOptions{
		Recorded: r.before.recorded, Since: r.before.definitions, Created: r.before.unfollowed, Log: r.log, OnDiscovery: r.discovered,
	})
	r.etcds.AnnouncedBy(r.follower.Synced())
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
	r.readiness.synced.Store(true)
	close(r.recording)
	r.log.Info("recording", "streams", len(streams), "after", time.Since(r.started).Round(time.Millisecond).String())
}

// close gives back what open took, as far as it came.
func (r *Recorder) close() error {
	var err error
	if r.sink != nil {
		r.closeSink()
	}
	err = errors.Join(err, r.spool.Close())
	// From here on, another may record.
	if r.election != nil {
		r.election.Close()
	}
	r.notices.Close()
	if r.http != nil {
		r.http.Close()
		<-r.served
	}
	if r.unlock != nil {
		err = errors.Join(err, r.unlock())
	}
	if r.database != nil {
		err = errors.Join(err, r.database.Close())
	}
	if r.cluster != nil {
		r.cluster.Close()
	}
	return err
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
		r.log.Warn("the database did not take leave", "timeout", closeSinkTimeout.String())
	}
}

// waiting is for how long the oldest delta has waited for the database.
func (r *Recorder) waiting() time.Duration {
	stats := r.queue.Stats()
	return max(stats.OldestAge, stats.SpoolAge)
}
