package recorder

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/deltafifo"
	"github.com/kuberewind/kuberewind/internal/clock"
	"github.com/kuberewind/kuberewind/internal/election"
	"github.com/kuberewind/kuberewind/internal/redact"
	"github.com/kuberewind/kuberewind/internal/rollback"
	"github.com/kuberewind/kuberewind/internal/spooling"
	"github.com/kuberewind/kuberewind/internal/stream"
	"github.com/kuberewind/kuberewind/internal/succession"
	"github.com/kuberewind/kuberewind/internal/version"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// releaseTimeout bounds the request for the server's release.
const releaseTimeout = 30 * time.Second

// open makes everything that the recorder needs. After an error, close closes the parts that open has made.
func (r *Recorder) open(ctx context.Context) error {
	if err := r.env.open(ctx); err != nil {
		return err
	}
	lease, err := r.env.cluster.Lease(ctx)
	if err != nil {
		return err
	}
	candidate := succession.Candidate{Config: r.env.cfg, Database: r.env.database, Cluster: r.env.cluster.UID, Lease: lease, Standby: r.env.standBy, Log: r.env.log}
	if r.election, err = candidate.Elect(ctx); err != nil {
		return err
	}
	r.askRelease(ctx) // Not earlier: a standby may have waited for days.
	// Only the leader migrates the schema: a standby may be of another version.
	if err := r.env.database.Ready(ctx, r.env.cfg.Migrate); err != nil {
		return err
	}
	return r.openRecord(ctx)
}

// askRelease asks the API server for its release. open calls it before it opens a stream, so that the first lists belong to this release.
func (r *Recorder) askRelease(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, releaseTimeout)
	defer cancel()
	release, err := r.env.cluster.Client.ServerVersion(ctx)
	if err != nil {
		r.env.log.Warn("reading the release of the API server failed", "error", err)
	}
	r.schemas.Serves(release)
}

func (r *Recorder) openRecord(ctx context.Context) error {
	name, uid := r.env.cluster.Name, r.env.cluster.UID
	file, err := redact.LoadKey(r.env.cfg.KeyFile())
	if err != nil {
		return err
	}
	key := file.Of(uid)
	paths, err := redact.ParsePaths(r.env.cfg.Redact)
	if err != nil {
		return err
	}
	redactor, err := redact.New(key, redact.Secrets(r.env.cfg.SecretValues), paths)
	if err != nil {
		return err
	}
	settings, err := json.Marshal(r.env.cfg.Masked().Settings())
	if err != nil {
		return err
	}
	present, record, err := r.env.database.Clocks(ctx, uid)
	if err != nil {
		return err
	}
	host := clock.ThisHost()
	r.clock = clock.New(host, clock.Start(host.Wall(), present, record))
	r.sink, err = postgres.Open(ctx, postgres.Config{
		URL: r.env.database.URL(), ClusterUID: uid, ClusterName: name, KeyFingerprint: key.Fingerprint(),
		Recorder: election.Name(), Version: version.String(), ConfigJSON: settings, Hooks: r.env.reporter().Hooks(), Logger: r.env.log, Now: r.clock.Now,
	})
	if err != nil {
		return err
	}
	streams := stream.Options{Record: r.sink, Rules: r.env.rules, Redactor: redactor, Schemas: r.schemas, Metrics: r.env.metrics}
	if err := r.loadBefore(ctx, &streams); err != nil {
		return err
	}
	info := r.sink.Info()
	r.clock.Raise(info.Started)
	r.time = clock.NewKeeper(r.clock, r.sink, r.env.log)
	if err := r.time.Begin(ctx, present); err != nil {
		return err
	}
	rollbackOptions := rollback.Options{Identity: r.env.identity, Now: r.clock.Now, QueueGaps: r.queueGaps}
	if info.Resumed {
		rollbackOptions.Verified = info.Verified
	}
	r.rollbackStreams = rollback.New(rollbackOptions)
	streams.RollbackStreams = r.rollbackStreams
	r.streams = stream.NewSet(streams)
	r.progress.started = r.clock.Now()
	queueBytes, err := r.env.cfg.QueueBytes()
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
		Client: r.env.cluster.Client, Queue: r.queue, Lists: stream.NewGate(r.env.cfg.ListConcurrency), Now: r.clock.Now, Returned: r.rollbackStreams.Returned, Log: r.env.log,
		LookAgain: func(gr schema.GroupResource) { r.follower.LookAgain(gr) },
	})
	r.env.reporter().WatchQueue(r.queue)
	r.env.metrics.OpenGaps(func() float64 { return float64(r.sink.OpenGaps()) })
	r.env.readiness.standby.Store(false)
	r.env.metrics.Leader.Set(1)
	r.env.notices.Normal("LeaderElected", fmt.Sprintf("%s records cluster %s, as epoch %d", election.Name(), name, info.Epoch))
	r.env.log.Info("record opened", "cluster", name, "uid", uid, "server", r.env.cluster.Client.Host(), "database", r.env.cfg.Masked().Database, "epoch", info.Epoch, "seq", info.AfterSeq)
	return nil
}

// queueGaps queues the gaps of all streams whose history was rolled back, as one entry (I3).
func (r *Recorder) queueGaps(ctx context.Context, proof string, gaps []rollback.Gap) error {
	return r.queue.InterruptTogether(ctx, delta.CauseHistoryReversed, proof, r.streams.Interruptions(gaps))
}
