package recorder

import (
	"context"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/deltafifo"
	"github.com/kuberewind/kuberewind/internal/config"
	"github.com/kuberewind/kuberewind/internal/telemetry"
	"github.com/kuberewind/kuberewind/kube"
	"github.com/kuberewind/kuberewind/reflector"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// metrics keeps the recorder's metrics.
type metrics struct{ *telemetry.Metrics }

// streamCounters are one stream's, looked up once.
type streamCounters struct {
	deltas             map[delta.Type]prometheus.Counter
	relists            func(cause delta.Cause) prometheus.Counter
	recovered          func(reflector.Recovery)
	watches            prometheus.Counter
	undecodable        prometheus.Counter
	up, position, seen prometheus.Gauge
}

func (m *metrics) stream(gr schema.GroupResource) streamCounters {
	labels := []string{gr.Group, gr.Resource}
	c := streamCounters{
		deltas: map[delta.Type]prometheus.Counter{},
		relists: func(cause delta.Cause) prometheus.Counter {
			return m.Relists.WithLabelValues(gr.Group, gr.Resource, string(cause))
		},
		recovered: func(done reflector.Recovery) {
			outcome := "partial"
			if done.Complete {
				outcome = "complete"
			}
			m.Recoveries.WithLabelValues(gr.Group, gr.Resource, outcome).Inc()
			m.RecoveryRequests.WithLabelValues(gr.Group, gr.Resource).Add(float64(done.Requests))
			m.RecoveredVersions.WithLabelValues(gr.Group, gr.Resource).Add(float64(done.Versions))
		},
		watches: m.Watches.WithLabelValues(labels...),

		undecodable: m.Undecodable.WithLabelValues(labels...),
		up:          m.StreamUp.WithLabelValues(labels...),
		position:    m.Position.WithLabelValues(labels...),
		seen:        m.LastRecorded.WithLabelValues(labels...),
	}
	for _, t := range []delta.Type{delta.Added, delta.Updated, delta.Deleted, delta.Sync} {
		c.deltas[t] = m.Deltas.WithLabelValues(gr.Group, gr.Resource, string(t))
	}
	return c
}

// outdated says whether the embedded PostgreSQL runs from files that were replaced.
func (m *metrics) outdated(is bool) {
	value := 0.0
	if is {
		value = 1
	}
	m.DatabaseOutdated.Set(value)
}

// committed counts the entries of a batch that is in the database.
func (m *metrics) committed(entries []deltafifo.Entry) {
	now := time.Now()
	for i := range entries {
		e := &entries[i]
		counters := &e.Stream.(*stream).counters
		if e.Delta.Type != "" {
			counters.deltas[e.Delta.Type].Inc()
			m.Lag.Observe(now.Sub(e.Observed).Seconds())
		}
		if rv, err := strconv.ParseFloat(e.Position, 64); err == nil {
			counters.position.Set(rv)
			counters.seen.Set(float64(e.Observed.UnixMilli()) / 1e3)
		}
	}
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
