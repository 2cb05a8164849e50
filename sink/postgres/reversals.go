package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kuberewind/kuberewind/delta"
)

// notifyWithin is how long a recorder that found a rollback may take to notify the streams. It retries about every ten
// seconds, and no stream is watched again before that. A stream that continued for longer was notified, or is in
// another etcd. The stream that could prove this may be gone by now.
const notifyWithin = 10 * time.Minute

// A Reversal is a rollback of the server's history, as recorded for a stream. The gap begins at FromRV and FromAt,
// which are empty if unknown.
type Reversal struct {
	Stream int32
	Proof  string
	FromRV string
	FromAt time.Time
}

// OtherReversals returns, by stream, the rollbacks of other streams on record after which the stream was not listed. Such a
// stream is in another etcd, or the previous recorder ended before it had notified every stream.
func (p *Prior) OtherReversals(ctx context.Context) (map[int32][]Reversal, error) {
	// Two streams that find the rollback independently do so within seconds of each other.
	rows, err := p.pool.Query(ctx, `
		SELECT s.stream, g.stream, split_part(g.detail, '; ', 1), coalesce(g.from_rv, ''), g.from_at FROM kuberewind.streams s
		JOIN kuberewind.gaps_data g ON g.cluster = s.cluster AND g.stream <> s.stream AND g.cause = $2
		JOIN kuberewind.batches b ON b.cluster = g.cluster AND b.batch = g.opened_batch
		WHERE s.cluster = $1 AND s.position IS NOT NULL AND s.started_at < b.observed_at AND s.positioned_at < b.observed_at + $4 AND NOT EXISTS (
			SELECT FROM kuberewind.gaps_data own
			WHERE own.cluster = s.cluster AND own.stream = s.stream AND own.outcome IS DISTINCT FROM $3
				AND (own.cause = $2 AND coalesce(own.to_at >= b.observed_at - interval '1 minute', true) OR own.to_at >= b.observed_at))
		ORDER BY g.gap`, p.cluster, delta.CauseHistoryReversed, delta.OutcomeResumed, notifyWithin)
	if err != nil {
		return nil, fmt.Errorf("read the rollbacks on record: %w", explain(err))
	}
	found := map[int32][]Reversal{}
	var stream int32
	var r Reversal
	var from *time.Time
	if _, err := pgx.ForEachRow(rows, []any{&stream, &r.Stream, &r.Proof, &r.FromRV, &from}, func() error {
		r.FromAt = time.Time{}
		if from != nil {
			r.FromAt = *from
		}
		found[stream] = append(found[stream], r)
		return nil
	}); err != nil {
		return nil, fmt.Errorf("read the rollbacks on record: %w", explain(err))
	}
	return found, nil
}
