package stream

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/deltafifo"
	"github.com/kuberewind/kuberewind/internal/telemetry"
	"github.com/kuberewind/kuberewind/reflector"
)

// counters are the metrics of one stream, looked up once.
type counters struct {
	deltas         map[delta.Type]prometheus.Counter
	relists        func(cause delta.Cause) prometheus.Counter
	recovered      func(reflector.Recovery)
	watches        prometheus.Counter
	undecodable    prometheus.Counter
	position, seen prometheus.Gauge
	// up says whether the stream follows the server. ended removes that value: there is nothing to follow.
	up    func(follows float64)
	ended func()
}

func newCounters(m *telemetry.Metrics, gr schema.GroupResource) counters {
	labels := []string{gr.Group, gr.Resource}
	c := counters{
		deltas: map[delta.Type]prometheus.Counter{},
		relists: func(cause delta.Cause) prometheus.Counter {
			return m.Streams.Relists.WithLabelValues(gr.Group, gr.Resource, string(cause))
		},
		recovered: func(done reflector.Recovery) {
			outcome := "partial"
			if done.Complete {
				outcome = "complete"
			}
			m.Streams.Recoveries.WithLabelValues(gr.Group, gr.Resource, outcome).Inc()
			m.Streams.RecoveryRequests.WithLabelValues(gr.Group, gr.Resource).Add(float64(done.Requests))
			m.Streams.RecoveredVersions.WithLabelValues(gr.Group, gr.Resource).Add(float64(done.Versions))
		},
		watches: m.Streams.Watches.WithLabelValues(labels...),

		undecodable: m.Streams.Undecodable.WithLabelValues(labels...),
		position:    m.Streams.Position.WithLabelValues(labels...),
		seen:        m.Streams.LastRecorded.WithLabelValues(labels...),

		up:    func(follows float64) { m.Streams.Up.WithLabelValues(labels...).Set(follows) },
		ended: func() { m.Streams.Up.DeleteLabelValues(labels...) },
	}
	for _, t := range []delta.Type{delta.Added, delta.Updated, delta.Deleted, delta.Sync} {
		c.deltas[t] = m.Streams.Deltas.WithLabelValues(gr.Group, gr.Resource, string(t))
	}
	return c
}

// Committed counts the entries of a batch that is in the database.
func Committed(m *telemetry.Metrics, entries []deltafifo.Entry) {
	now := time.Now()
	for i := range entries {
		e := &entries[i]
		counters := &e.Stream.(*Stream).counters
		if e.Delta.Type != "" {
			counters.deltas[e.Delta.Type].Inc()
			m.Sink.Lag.Observe(now.Sub(e.Observed).Seconds())
		}
		if rv, err := strconv.ParseFloat(e.Position, 64); err == nil {
			counters.position.Set(rv)
			counters.seen.Set(float64(e.Observed.UnixMilli()) / 1e3)
		}
	}
}
