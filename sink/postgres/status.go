package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kuberewind/kuberewind/delta"
)

// Status is the state of all clusters in a record.
type Status struct {
	Clusters []ClusterStatus `json:"clusters"`
}

// ClusterStatus is the state of one cluster's record.
type ClusterStatus struct {
	Cluster      int32     `json:"cluster"`
	Name         string    `json:"name"`
	UID          string    `json:"uid"`
	RegisteredAt time.Time `json:"registeredAt"`

	Seq         int64     `json:"seq"`
	Batch       int64     `json:"batch"`
	ObservedAt  time.Time `json:"observedAt"`           // of the last commit
	CommittedAt time.Time `json:"committedAt,omitzero"` // of the last commit; zero before the first, or if its partition is gone

	Epoch     int64     `json:"epoch"` // of the writer that took over last
	Recorder  string    `json:"recorder"`
	Version   string    `json:"version"`
	StartedAt time.Time `json:"startedAt"`

	Gaps    PastGaps       `json:"gaps"`
	Streams []StreamStatus `json:"streams"` // by group, resource, scope
}

// PastGaps counts the gaps that a list closed, except first lists: versions may have been missed.
type PastGaps struct {
	Missed int64     `json:"missed"`
	Last   time.Time `json:"last,omitzero"` // end of the last of these gaps
}

// StreamStatus is the state of one stream.
type StreamStatus struct {
	Stream       int32       `json:"stream"`
	Group        string      `json:"group"`
	Resource     string      `json:"resource"`
	Scope        string      `json:"scope,omitempty"` // a namespace; "" for all
	Version      string      `json:"version"`
	Kind         string      `json:"kind"`
	State        delta.State `json:"state"`
	StateSince   time.Time   `json:"stateSince"`
	Detail       string      `json:"detail,omitempty"`
	Position     string      `json:"position,omitempty"` // "" before the first list is complete
	PositionedAt time.Time   `json:"positionedAt"`
	LastSeq      int64       `json:"lastSeq"`
	Living       int64       `json:"living"`            // objects
	Gap          *OpenGap    `json:"openGap,omitempty"` // nil if there is none
}

// An OpenGap is a period of a stream that is still unseen.
type OpenGap struct {
	Cause  delta.Cause `json:"cause"`
	Detail string      `json:"detail,omitempty"`
	Since  time.Time   `json:"since,omitzero"` // zero if the stream never was complete
}

// ReadStatus reads the state of all clusters. It changes nothing, and needs no Sink.
func ReadStatus(ctx context.Context, db Queryer) (Status, error) {
	clusters, err := readClusters(ctx, db)
	if err != nil {
		return Status{}, fmt.Errorf("read the clusters of the record: %w", explain(err))
	}
	for i := range clusters {
		clusters[i].Streams, err = readStreams(ctx, db, clusters[i].Cluster)
		if err != nil {
			return Status{}, fmt.Errorf("read the streams of cluster %q: %w", clusters[i].Name, explain(err))
		}
	}
	return Status{Clusters: clusters}, nil
}

func readClusters(ctx context.Context, db Queryer) ([]ClusterStatus, error) {
	rows, err := db.Query(ctx, `
		SELECT c.cluster, c.name, c.uid, c.registered_at, h.seq, h.batch, h.observed_at, b.committed_at,
			h.epoch, coalesce(e.recorder, ''), coalesce(e.version, ''), coalesce(e.started_at, c.registered_at),
			g.missed, g.last
		FROM kuberewind.clusters c
		JOIN kuberewind.heads h ON h.cluster = c.cluster
		LEFT JOIN kuberewind.epochs e ON e.cluster = c.cluster AND e.epoch = h.epoch
		LEFT JOIN kuberewind.batches b ON b.cluster = c.cluster AND b.batch = h.batch AND b.observed_at = h.observed_at
		CROSS JOIN LATERAL (
			SELECT count(*) AS missed, max(to_at) AS last FROM kuberewind.gaps_data
			WHERE cluster = c.cluster AND cause <> $1 AND outcome <> $2
		) g
		ORDER BY c.name`, delta.CauseFirstList, delta.OutcomeResumed)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (c ClusterStatus, err error) {
		var committed, last *time.Time
		err = row.Scan(&c.Cluster, &c.Name, &c.UID, &c.RegisteredAt, &c.Seq, &c.Batch, &c.ObservedAt, &committed,
			&c.Epoch, &c.Recorder, &c.Version, &c.StartedAt, &c.Gaps.Missed, &last)
		if last != nil {
			c.Gaps.Last = *last
		}
		if committed != nil {
			c.CommittedAt = *committed
		}
		return c, err
	})
}

func readStreams(ctx context.Context, db Queryer, cluster int32) ([]StreamStatus, error) {
	rows, err := db.Query(ctx, `
		SELECT s.stream, s.api_group, s.resource, s.scope, s.version, s.kind, s.state, s.state_since, s.detail,
			coalesce(s.position, ''), s.positioned_at, s.last_seq,
			(SELECT count(*) FROM kuberewind.living l WHERE l.cluster = s.cluster AND l.stream = s.stream),
			g.cause, g.detail, g.from_at
		FROM kuberewind.streams s
		LEFT JOIN kuberewind.gaps_data g ON g.cluster = s.cluster AND g.stream = s.stream AND g.closed_batch IS NULL
		WHERE s.cluster = $1
		ORDER BY s.api_group, s.resource, s.scope`, cluster)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scanStream)
}

func scanStream(row pgx.CollectableRow) (s StreamStatus, err error) {
	var cause, detail *string
	var since *time.Time
	err = row.Scan(&s.Stream, &s.Group, &s.Resource, &s.Scope, &s.Version, &s.Kind, &s.State, &s.StateSince, &s.Detail,
		&s.Position, &s.PositionedAt, &s.LastSeq, &s.Living, &cause, &detail, &since)
	if cause != nil {
		s.Gap = &OpenGap{Cause: delta.Cause(*cause), Detail: textOf(detail)}
		if since != nil {
			s.Gap.Since = *since
		}
	}
	return s, err
}
