package recorder

import (
	"context"
	"time"

	"github.com/kuberewind/kuberewind/deltafifo"
	"github.com/kuberewind/kuberewind/internal/config"
	"github.com/kuberewind/kuberewind/internal/telemetry"
	"github.com/kuberewind/kuberewind/kube"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// metrics keeps the recorder's metrics.
type metrics struct{ *telemetry.Metrics }

// outdated says whether the embedded PostgreSQL runs from files that were replaced.
func (m *metrics) outdated(is bool) {
	value := 0.0
	if is {
		value = 1
	}
	m.DatabaseOutdated.Set(value)
}

// watchQueue has the queue's state read when it is scraped.
func (m *metrics) watchQueue(q *deltafifo.Queue) {
	m.Queue(
		func() float64 { return float64(q.Stats().Bytes) },
		func() float64 { return float64(q.Stats().Entries) },
		func() float64 { return q.Stats().OldestAge.Seconds() },
		func() float64 { return q.Stats().Blocked.Seconds() },
	)
	m.Spool(
		func() float64 { return float64(q.Stats().SpoolBytes) },
		func() float64 { return float64(q.Stats().Spooled) },
		func() float64 { return q.Stats().SpoolAge.Seconds() },
	)
}

// sinkHooks tell metrics and log what the sink does.
func (r *Recorder) sinkHooks() postgres.Hooks {
	m := r.metrics
	return postgres.Hooks{
		Committed: func(s postgres.CommitStats) {
			m.Rows.Add(float64(s.Rows))
			m.Batches.Inc()
			m.Keyframes.Add(float64(s.Keyframes))
			m.Skipped.Add(float64(s.Skipped))
			m.CommitSeconds.Observe(s.Latency.Seconds())
			m.Head.Set(float64(s.LastSeq))
		},
		Retrying: func(t postgres.Retry) {
			m.CommitRetries.WithLabelValues(string(t.Class)).Inc()
			if t.Class == postgres.Connection {
				r.database.Missed()
			}
			r.log.Warn("the database does not take what is queued; trying again",
				"attempt", t.Attempt, "wait", t.Wait.Round(time.Millisecond).String(), "error", config.Plain(t.Err))
		},
		Mismatch: func(x postgres.Mismatch) {
			m.PatchMismatch.Inc()
			r.log.Error("a patch did not give what was served; the whole object was stored", "seq", x.Seq, "key", x.Key, "error", x.Err)
		},
		Unfolded: func(x postgres.Mismatch) {
			m.PatchMismatch.Inc()
			r.log.Error("the record of an object cannot be folded, or not be redacted; its next version is stored whole", "seq", x.Seq, "key", x.Key, "error", x.Err)
		},
		Gap: r.gapChanged,
	}
}

// discovered is told of each discovery.
func (r *Recorder) discovered(_ context.Context, d *kube.Discovery) {
	if len(d.Failed) > 0 {
		r.metrics.DiscoveryFails.Inc()
	}
	for gv, err := range d.Failed {
		r.log.Warn("a group version cannot be discovered; what is recorded of it goes on, what is new in it has to wait", "group_version", gv.String(), "error", err)
	}
}
