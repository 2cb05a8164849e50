// Package reporting reports what sink, queue, database and discovery do: in metrics, in the log, and to notices.
//
// A Reporter has no state, no lock and no goroutine. The components that it reports on call its methods.
package reporting

import (
	"context"
	"log/slog"
	"time"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/deltafifo"
	"github.com/kuberewind/kuberewind/internal/config"
	"github.com/kuberewind/kuberewind/internal/telemetry"
	"github.com/kuberewind/kuberewind/kube"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// Reporter reports to metrics, log and notices.
type Reporter struct {
	Metrics *telemetry.Metrics
	Log     *slog.Logger
	Notices interface{ Gap(*postgres.GapChange) } // writes an Event about a gap
	// Missed is called when the database does not answer.
	Missed func()
}

// Outdated sets the metric that is 1 while the embedded PostgreSQL runs from files that were replaced.
func (r *Reporter) Outdated(is bool) {
	value := 0.0
	if is {
		value = 1
	}
	r.Metrics.DatabaseOutdated.Set(value)
}

// WatchQueue registers metrics of the queue. Each scrape reads the state of the queue.
func (r *Reporter) WatchQueue(q *deltafifo.Queue) {
	r.Metrics.Queue(
		func() float64 { return float64(q.Stats().Bytes) },
		func() float64 { return float64(q.Stats().Entries) },
		func() float64 { return q.Stats().OldestAge.Seconds() },
		func() float64 { return q.Stats().Blocked.Seconds() },
	)
	r.Metrics.Spool(
		func() float64 { return float64(q.Stats().SpoolBytes) },
		func() float64 { return float64(q.Stats().Spooled) },
		func() float64 { return q.Stats().SpoolAge.Seconds() },
	)
}

// Hooks returns functions that report what the sink does.
func (r *Reporter) Hooks() postgres.Hooks {
	m := r.Metrics.Sink
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
				r.Missed()
			}
			r.Log.Warn("the database did not commit the queued deltas; retrying",
				"attempt", t.Attempt, "wait", t.Wait.Round(time.Millisecond).String(), "error", config.Plain(t.Err))
		},
		Mismatch: func(x postgres.Mismatch) {
			m.PatchMismatch.Inc()
			r.Log.Error("a patch did not reproduce the served object; the whole object was stored", "seq", x.Seq, "key", x.Key, "error", x.Err)
		},
		Unfolded: func(x postgres.Mismatch) {
			m.PatchMismatch.Inc()
			r.Log.Error("a recorded object cannot be rebuilt or redacted; its next version is stored whole", "seq", x.Seq, "key", x.Key, "error", x.Err)
		},
		Gap: r.gapChanged,
	}
}

// Discovered reports the group versions that a discovery could not read.
func (r *Reporter) Discovered(_ context.Context, d *kube.Discovery) {
	if len(d.Failed) > 0 {
		r.Metrics.DiscoveryFails.Inc()
	}
	for gv, err := range d.Failed {
		r.Log.Warn("a group version cannot be discovered; its known resources are still recorded, new ones must wait", "group_version", gv.String(), "error", err)
	}
}

// gapChanged reports each gap when it is opened and when it is closed (I3). It logs a first list only at level debug.
func (r *Reporter) gapChanged(g postgres.GapChange) {
	r.Notices.Gap(&g)
	if g.Closed {
		r.Metrics.Streams.Gaps.WithLabelValues(g.Group, g.Resource, string(g.Cause), string(g.Outcome)).Inc()
	}
	log := r.Log.With("group", g.Group, "resource", g.Resource, "cause", g.Cause)
	if g.FromRV != "" {
		log = log.With("from", g.FromRV, "from_time", g.FromTime)
	}
	if !g.Closed {
		log.Warn("a gap is open: changes of this resource cannot be seen", "detail", g.Detail)
		return
	}
	log = log.With("to", g.ToRV, "to_time", g.ToTime)
	if !g.Missed() {
		log.Info("the gap is closed: nothing was missed")
		return
	}
	log = log.With("appeared", g.Appeared, "changed", g.Changed, "vanished", g.Vanished)
	if g.Cause == delta.CauseFirstList {
		log.Debug("listed for the first time")
		return
	}
	log.Warn("the gap is closed: versions may have been missed", "detail", g.Detail)
}
