package recorder

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/kuberewind/kuberewind/deltafifo"
	"github.com/kuberewind/kuberewind/internal/clock"
	"github.com/kuberewind/kuberewind/internal/cluster"
	"github.com/kuberewind/kuberewind/internal/database"
	"github.com/kuberewind/kuberewind/internal/election"
	"github.com/kuberewind/kuberewind/internal/notices"
	"github.com/kuberewind/kuberewind/internal/redact"
	"github.com/kuberewind/kuberewind/internal/rollback"
	"github.com/kuberewind/kuberewind/internal/spooling"
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
	if r.filter, err = r.cfg.Filter(); err != nil {
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
	if r.redactor, err = redact.New(key, redact.Secrets(r.cfg.SecretValues), paths); err != nil {
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
	if r.definitions, err = r.sink.Prior().Position(ctx, kube.Definitions.Group, kube.Definitions.Resource); err != nil {
		return err
	}
	if err := r.loadRecorded(ctx); err != nil {
		return err
	}
	if r.newest, err = r.sink.Prior().Revisions(ctx); err != nil {
		return err
	}
	if r.unproven, err = r.sink.Prior().Unproven(ctx); err != nil {
		return err
	}
	if r.untold, err = r.sink.Prior().Untold(ctx); err != nil {
		return err
	}
	info := r.sink.Info()
	r.filterBefore = filterOf(info.Config)
	if err := r.loadUnfollowed(ctx); err != nil {
		return err
	}
	r.clock.Raise(info.Started)
	r.now = r.clock.Now
	r.time = clock.NewKeeper(r.clock, r.sink, r.log)
	if err := r.time.Begin(ctx, present); err != nil {
		return err
	}
	etcds := rollback.Options{Identity: r.identity, Now: r.now, Record: r.recordRollback}
	if info.Resumed {
		etcds.Taken = info.Observed
	}
	r.etcds = rollback.New(etcds)
	r.clusterName = name
	r.started = r.now()
	queueBytes, err := r.cfg.QueueBytes()
	if err != nil {
		return err
	}
	options := deltafifo.Options{MaxBytes: queueBytes, Now: r.now}
	seen, err := r.openSpool(ctx, &options, spooling.NewOwner(uid, key.Fingerprint(), info.Head))
	if err != nil {
		return err
	}
	if err := r.sink.RecordPause(ctx, seen); err != nil {
		return err
	}
	r.queue = deltafifo.New(options)
	r.metrics.watchQueue(r.queue)
	r.metrics.OpenGaps(func() float64 { return float64(r.sink.OpenGaps()) })
	r.standby.Store(false)
	r.metrics.Leader.Set(1)
	r.notices.Normal("LeaderElected", fmt.Sprintf("%s records cluster %s, as epoch %d", election.Name(), name, info.Epoch))
	r.log.Info("record opened", "cluster", name, "uid", uid, "server", r.client.Host(), "database", r.cfg.Masked().Database, "epoch", info.Epoch, "seq", info.AfterSeq)
	return nil
}
