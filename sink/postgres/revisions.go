package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// recentDeltas and recentFor bound how far back Revisions looks: a position that is older than an API server's bookmarks by more
	// than that is of a recorder that was away for longer than etcd keeps history, as it is usually set.
	recentDeltas = 100_000
	recentFor    = 10 * time.Minute
)

// Revisions gives the resource versions of the newest deltas before this writer, by the number of their stream. Those of a history that has
// gone backwards since are left out, as are those of deltas that no server has served with it.
func (s *Sink) Revisions(ctx context.Context) (map[int32][]string, error) {
	rows, err := s.pool.Query(ctx, `
		SELECT d.stream, d.rv FROM kuberewind.deltas_data d
		LEFT JOIN (
			SELECT g.stream, max(b.last_seq) AS seq FROM kuberewind.gaps_data g
			JOIN kuberewind.batches b ON b.cluster = g.cluster AND b.batch = g.opened_batch
			WHERE g.cluster = $1 AND g.cause = $5 GROUP BY g.stream
		) reversed ON reversed.stream = d.stream
		WHERE d.cluster = $1 AND d.seq > $2 AND d.observed_at >= $3 AND d.source <> $4 AND d.seq > coalesce(reversed.seq, 0)`,
		s.info.Cluster, s.info.AfterSeq-recentDeltas, s.info.Observed.Add(-recentFor), sourceInferred, causeReversed)
	if err != nil {
		return nil, fmt.Errorf("newest resource versions on record: %w", explain(err))
	}
	found := map[int32][]string{}
	var stream int32
	var rv string
	if _, err := pgx.ForEachRow(rows, []any{&stream, &rv}, func() error {
		found[stream] = append(found[stream], rv)
		return nil
	}); err != nil {
		return nil, fmt.Errorf("newest resource versions on record: %w", explain(err))
	}
	return found, nil
}
