// Package telemetry provides the recorder's metrics, health checks and logs. It has no global state: the composition root makes the registry,
// the handler and the logger once, and passes them on.
package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Metrics holds the recorder's own metrics.
type Metrics struct {
	Registry *prometheus.Registry

	Streams StreamMetrics
	Sink    SinkMetrics

	Leader           prometheus.Gauge
	DiscoveryFails   prometheus.Counter
	SpoolFailing     prometheus.Gauge
	SpoolSetAside    prometheus.Counter
	DatabaseOutdated prometheus.Gauge
}

// StreamMetrics are those of each stream. They have the labels group and resource.
type StreamMetrics struct {
	Deltas       *prometheus.CounterVec
	Position     *prometheus.GaugeVec
	LastRecorded *prometheus.GaugeVec
	Up           *prometheus.GaugeVec
	Relists      *prometheus.CounterVec
	Watches      *prometheus.CounterVec
	Gaps         *prometheus.CounterVec
	Undecodable  *prometheus.CounterVec

	Recoveries        *prometheus.CounterVec
	RecoveryRequests  *prometheus.CounterVec
	RecoveredVersions *prometheus.CounterVec
}

// SinkMetrics are those of the sink, for all streams together.
type SinkMetrics struct {
	Rows          prometheus.Counter
	Batches       prometheus.Counter
	CommitSeconds prometheus.Histogram
	CommitRetries *prometheus.CounterVec
	Lag           prometheus.Histogram
	Skipped       prometheus.Counter
	Keyframes     prometheus.Counter
	PatchMismatch prometheus.Counter
	Head          prometheus.Gauge
}

// NewMetrics registers all metrics, including those of the Go runtime and the process.
func NewMetrics() *Metrics {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	f := promauto.With(registry)
	return &Metrics{
		Registry: registry,
		Streams:  newStreamMetrics(f),
		Sink:     newSinkMetrics(f),
		Leader: f.NewGauge(prometheus.GaugeOpts{Name: "kuberewind_leader",
			Help: "1 while this recorder records its cluster, 0 while it stands by."}),
		DiscoveryFails: f.NewCounter(prometheus.CounterOpts{Name: "kuberewind_discovery_failures_total",
			Help: "Discoveries that failed, wholly or for some groups."}),
		SpoolFailing: f.NewGauge(prometheus.GaugeOpts{Name: "kuberewind_spool_failing",
			Help: "1 while the spool cannot be written, because it or its disk is full; when the queue is full, too, the watches pause. 0 again when the spool can be written, or no entry needs it."}),
		SpoolSetAside: f.NewCounter(prometheus.CounterOpts{Name: "kuberewind_spool_set_aside_total",
			Help: "Spools, or parts of them, that were damaged or overtaken and were set aside."}),
		DatabaseOutdated: f.NewGauge(prometheus.GaugeOpts{Name: "kuberewind_database_outdated",
			Help: "1 while the embedded PostgreSQL runs from files that were replaced on disk, by an upgrade for example; the recorder restarts it when that cuts no session of another program."}),
	}
}

func newStreamMetrics(f promauto.Factory) StreamMetrics {
	stream := []string{"group", "resource"}
	return StreamMetrics{
		Deltas: f.NewCounterVec(prometheus.CounterOpts{Name: "kuberewind_deltas_total",
			Help: "Deltas committed, by stream and type."}, append(stream, "type")),
		Position: f.NewGaugeVec(prometheus.GaugeOpts{Name: "kuberewind_stream_position",
			Help: "Resource version up to which a stream is committed."}, stream),
		LastRecorded: f.NewGaugeVec(prometheus.GaugeOpts{Name: "kuberewind_stream_recorded_timestamp_seconds",
			Help: "When the newest committed delta or bookmark of a stream was observed; the lag of a busy stream is now minus this."}, stream),
		Up: f.NewGaugeVec(prometheus.GaugeOpts{Name: "kuberewind_stream_up",
			Help: "1 while a stream follows the server, 0 while it is listing or interrupted. A resource that has ended has no value."}, stream),
		Relists: f.NewCounterVec(prometheus.CounterOpts{Name: "kuberewind_relists_total",
			Help: "Lists made, by stream and cause; each is a gap."}, append(stream, "cause")),
		Watches: f.NewCounterVec(prometheus.CounterOpts{Name: "kuberewind_watches_total",
			Help: "Watches opened, by stream."}, stream),
		Gaps: f.NewCounterVec(prometheus.CounterOpts{Name: "kuberewind_gaps_total",
			Help: "Gaps closed, by stream, cause and outcome (resumed: nothing was missed; relisted, equal: versions may have been)."}, append(stream, "cause", "outcome")),
		Undecodable: f.NewCounterVec(prometheus.CounterOpts{Name: "kuberewind_undecodable_total",
			Help: "Objects that could not be decoded; each lies in a gap."}, stream),
		Recoveries: f.NewCounterVec(prometheus.CounterOpts{Name: "kuberewind_recoveries_total",
			Help: "Attempts to recover history that could no longer be watched, by stream and outcome (complete, partial)."}, append(stream, "outcome")),
		RecoveryRequests: f.NewCounterVec(prometheus.CounterOpts{Name: "kuberewind_recovery_requests_total",
			Help: "Lists that recovering history took, by stream."}, stream),
		RecoveredVersions: f.NewCounterVec(prometheus.CounterOpts{Name: "kuberewind_recovered_versions_total",
			Help: "Versions recovered by stream; without that, each would be in a gap."}, stream),
	}
}

func newSinkMetrics(f promauto.Factory) SinkMetrics {
	return SinkMetrics{
		Rows: f.NewCounter(prometheus.CounterOpts{Name: "kuberewind_sink_rows_total",
			Help: "Rows of deltas committed."}),
		Batches: f.NewCounter(prometheus.CounterOpts{Name: "kuberewind_sink_batches_total",
			Help: "Transactions committed."}),
		CommitSeconds: f.NewHistogram(prometheus.HistogramOpts{Name: "kuberewind_sink_commit_seconds",
			Help: "Time of one commit, retries included.", Buckets: prometheus.ExponentialBuckets(0.001, 2, 16)}),
		CommitRetries: f.NewCounterVec(prometheus.CounterOpts{Name: "kuberewind_sink_commit_retries_total",
			Help: "Retries of commits, by SQLSTATE or cause."}, []string{"cause"}),
		Lag: f.NewHistogram(prometheus.HistogramOpts{Name: "kuberewind_delta_lag_seconds",
			Help: "Time from the observation of a delta to its commit.", Buckets: prometheus.ExponentialBuckets(0.001, 2, 18)}),
		Skipped: f.NewCounter(prometheus.CounterOpts{Name: "kuberewind_deltas_skipped_total",
			Help: "Deltas that the server sent again and that were on record already."}),
		Keyframes: f.NewCounter(prometheus.CounterOpts{Name: "kuberewind_keyframes_total",
			Help: "Rows that hold the whole object."}),
		PatchMismatch: f.NewCounter(prometheus.CounterOpts{Name: "kuberewind_patch_mismatches_total",
			Help: "Patches that failed their check, and rows on record that do not fold to their digest; above 0 is a defect."}),
		Head: f.NewGauge(prometheus.GaugeOpts{Name: "kuberewind_head_seq",
			Help: "Number of the newest committed delta."}),
	}
}

// OpenGaps registers a gauge that counts the open gaps at each scrape.
func (m *Metrics) OpenGaps(open func() float64) {
	promauto.With(m.Registry).NewGaugeFunc(prometheus.GaugeOpts{Name: "kuberewind_gaps_open",
		Help: "Streams that have an open gap: their changes cannot be seen."}, open)
}

// Spool registers gauges that read the state of the spool at each scrape.
func (m *Metrics) Spool(bytes, entries, oldestSeconds func() float64) {
	f := promauto.With(m.Registry)
	f.NewGaugeFunc(prometheus.GaugeOpts{Name: "kuberewind_spool_bytes",
		Help: "Bytes on disk that wait for the database."}, bytes)
	f.NewGaugeFunc(prometheus.GaugeOpts{Name: "kuberewind_spool_entries",
		Help: "Entries on disk that wait for the database."}, entries)
	f.NewGaugeFunc(prometheus.GaugeOpts{Name: "kuberewind_spool_oldest_seconds",
		Help: "Age of the oldest entry on disk."}, oldestSeconds)
}

// Queue registers gauges that read the state of the queue at each scrape.
func (m *Metrics) Queue(bytes, entries, oldestSeconds, blockedSeconds func() float64) {
	f := promauto.With(m.Registry)
	f.NewGaugeFunc(prometheus.GaugeOpts{Name: "kuberewind_queue_bytes",
		Help: "Bytes that wait for the database."}, bytes)
	f.NewGaugeFunc(prometheus.GaugeOpts{Name: "kuberewind_queue_entries",
		Help: "Entries that wait for the database."}, entries)
	f.NewGaugeFunc(prometheus.GaugeOpts{Name: "kuberewind_queue_oldest_seconds",
		Help: "Age of the oldest entry that waits."}, oldestSeconds)
	f.NewCounterFunc(prometheus.CounterOpts{Name: "kuberewind_queue_blocked_seconds_total",
		Help: "Time for which streams waited because the queue was full."}, blockedSeconds)
}
