package recorder

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/deltafifo"
	"github.com/kuberewind/kuberewind/internal/clock"
	"github.com/kuberewind/kuberewind/internal/cluster"
	"github.com/kuberewind/kuberewind/internal/database"
	"github.com/kuberewind/kuberewind/internal/election"
	"github.com/kuberewind/kuberewind/internal/notices"
	"github.com/kuberewind/kuberewind/internal/redact"
	"github.com/kuberewind/kuberewind/internal/resources"
	"github.com/kuberewind/kuberewind/internal/rollback"
	"github.com/kuberewind/kuberewind/internal/spooling"
	"github.com/kuberewind/kuberewind/internal/stream"
	"github.com/kuberewind/kuberewind/internal/telemetry"
	"github.com/kuberewind/kuberewind/internal/version"
	"github.com/kuberewind/kuberewind/kube"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// releaseTimeout bounds the question for the server's release.
const releaseTimeout = 30 * time.Second

// open makes everything that the recorder needs. What was made before an error is closed by close.
func (r *Recorder) open(ctx context.Context) error {
	r.metrics = &metrics{telemetry.NewMetrics()}
	var err error
	if r.rules, err = r.cfg.Filter(); err != nil {
		return err
	}
	if r.cluster, err = cluster.Connect(ctx, r.cfg, r.log); err != nil {
		return err
	}
	r.client = r.cluster.Client
	name, uid := r.cluster.Name, r.cluster.UID
	r.identity = cluster.NewIdentity(r.client.Host(), uid, r.client.ClusterUID, r.log)
	if r.database, err = database.Open(ctx, r.cfg, r.log); err != nil {
		return err
	}
	if r.unlock, err = r.database.Lock(uid); err != nil {
		return err
	}
	// Before the election: one that could not listen would end, and have ended the recorder before it.
	if err := r.listen(); err != nil {
		return err
	}
	publisher, err := r.cluster.Publisher(ctx)
	if err != nil {
		return err
	}
	r.notices = notices.New(publisher)
	if r.recordedBefore(uid) {
		if err := r.database.Await(ctx); err != nil {
			return err
		}
	}
	lease, err := r.cluster.Lease(ctx)
	if err != nil {
		return err
	}
	if err := r.elect(ctx, uid, lease); err != nil {
		return err
	}
	r.askRelease(ctx) // A standby may have waited for days.
	// A standby leaves the schema to the leader, which may be of another version.
	if err := r.database.Ready(ctx, r.cfg.Migrate); err != nil {
		return err
	}
	return r.openSink(ctx, name, uid)
}

// recordedBefore says whether a recorder has recorded the cluster from this data directory: what it was told of the database was right once.
func (r *Recorder) recordedBefore(uid string) bool {
	_, err := os.Stat(r.spoolDir(uid))
	return err == nil
}

// askRelease comes before any stream is opened: what is listed first is listed under this release.
func (r *Recorder) askRelease(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, releaseTimeout)
	defer cancel()
	release, err := r.client.ServerVersion(ctx)
	if err != nil {
		r.log.Warn("the API server does not say which release it is", "error", err)
	}
	r.schemas.Serves(release)
}

func (r *Recorder) openSink(ctx context.Context, name, uid string) error {
	file, err := redact.LoadKey(r.cfg.KeyFile())
	if err != nil {
		return err
	}
	key := file.Of(uid)
	paths, err := redact.ParsePaths(r.cfg.Redact)
	if err != nil {
		return err
	}
	redactor, err := redact.New(key, redact.Secrets(r.cfg.SecretValues), paths)
	if err != nil {
		return err
	}
	settings, err := json.Marshal(r.cfg.Masked().Settings())
	if err != nil {
		return err
	}
	present, record, err := r.database.Clocks(ctx, uid)
	if err != nil {
		return err
	}
	host := clock.ThisHost()
	r.clock = clock.New(host, clock.Start(host.Wall(), present, record))
	r.sink, err = postgres.Open(ctx, postgres.Config{
		URL: r.database.URL(), ClusterUID: uid, ClusterName: name, KeyFingerprint: key.Fingerprint(),
		Recorder: election.Name(), Version: version.String(), ConfigJSON: settings, Hooks: r.sinkHooks(), Logger: r.log, Now: r.clock.Now,
	})
	if err != nil {
		return err
	}
	streams := stream.Options{Record: r.sink, Rules: r.rules, Redactor: redactor, Schemas: r.schemas, Metrics: r.metrics.Metrics}
	if err := r.loadBefore(ctx, &streams); err != nil {
		return err
	}
	info := r.sink.Info()
	r.clock.Raise(info.Started)
	r.time = clock.NewKeeper(r.clock, r.sink, r.log)
	if err := r.time.Begin(ctx, present); err != nil {
		return err
	}
	etcds := rollback.Options{Identity: r.identity, Now: r.clock.Now, Record: r.recordRollback}
	if info.Resumed {
		etcds.Taken = info.Observed
	}
	r.etcds = rollback.New(etcds)
	streams.Etcds = r.etcds
	r.streams = stream.NewSet(streams)
	r.clusterName = name
	r.started = r.clock.Now()
	queueBytes, err := r.cfg.QueueBytes()
	if err != nil {
		return err
	}
	options := deltafifo.Options{MaxBytes: queueBytes, Now: r.clock.Now}
	seen, err := r.openSpool(ctx, &options, spooling.NewOwner(uid, key.Fingerprint(), info.Head))
	if err != nil {
		return err
	}
	if err := r.sink.RecordPause(ctx, seen); err != nil {
		return err
	}
	r.queue = deltafifo.New(options)
	r.launcher = stream.NewLauncher(stream.Launcher{
		Client: r.client, Queue: r.queue, Lists: stream.NewGate(r.cfg.ListConcurrency), Now: r.clock.Now, Returned: r.etcds.Returned, Log: r.log,
		LookAgain: func(gr schema.GroupResource) { r.follower.LookAgain(gr) },
	})
	r.metrics.watchQueue(r.queue)
	r.metrics.OpenGaps(func() float64 { return float64(r.sink.OpenGaps()) })
	r.readiness.standby.Store(false)
	r.metrics.Leader.Set(1)
	r.notices.Normal("LeaderElected", fmt.Sprintf("%s records cluster %s, as epoch %d", election.Name(), name, info.Epoch))
	r.log.Info("record opened", "cluster", name, "uid", uid, "server", r.client.Host(), "database", r.cfg.Masked().Database, "epoch", info.Epoch, "seq", info.AfterSeq)
	return nil
}

// loadBefore finds what a recorder before this one has left on record.
func (r *Recorder) loadBefore(ctx context.Context, streams *stream.Options) (err error) {
	prior, b := r.sink.Prior(), &r.before
	if b.definitions, err = prior.Position(ctx, kube.Definitions.Group, kube.Definitions.Resource); err != nil {
		return err
	}
	if b.recorded, err = resources.Recorded(ctx, prior, r.rules); err != nil {
		return err
	}
	if streams.Newest, err = prior.Revisions(ctx); err != nil {
		return err
	}
	if streams.Unproven, err = prior.Unproven(ctx); err != nil {
		return err
	}
	if streams.Untold, err = prior.Untold(ctx); err != nil {
		return err
	}
	streams.Before = filterOf(r.sink.Info().Config)
	b.unfollowed, err = resources.Unfollowed(ctx, prior, streams.Before)
	return err
}

// recordRollback queues the gaps of streams whose history is no more, as one entry (I3).
func (r *Recorder) recordRollback(ctx context.Context, proof string, gaps []rollback.Gap) error {
	return r.queue.InterruptTogether(ctx, delta.CauseHistoryReversed, proof, r.streams.Late(gaps))
}
