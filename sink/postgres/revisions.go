package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kuberewind/kuberewind/delta"
)

const (
	// recentDeltas and recentFor bound how far back Revisions looks. API servers move positions by bookmarks. A
	// position older than both bounds belongs to a recorder that was away for longer than etcd usually keeps history.
	recentDeltas = 100_000
	recentFor    = 10 * time.Minute
)

// Revisions returns the resource versions of the newest deltas before this writer, by the number of their stream. It
// omits versions from before a rollback. It also omits inferred deltas, because no server has served them with their
// version.
func (p *Prior) Revisions(ctx context.Context) (map[int32][]string, error) {
	rows, err := p.pool.Query(ctx, `
		SELECT d.stream, d.rv FROM kuberewind.deltas_data d
		LEFT JOIN (
			SELECT g.stream, max(b.last_seq) AS seq FROM kuberewind.gaps_data g
			JOIN kuberewind.batches b ON b.cluster = g.cluster AND b.batch = g.opened_batch
			WHERE g.cluster = $1 AND g.cause = $5 GROUP BY g.stream
		) reversed ON reversed.stream = d.stream
		WHERE d.cluster = $1 AND d.seq > $2 AND d.observed_at >= $3 AND d.source <> $4 AND d.seq > coalesce(reversed.seq, 0)`,
		p.cluster, p.afterSeq-recentDeltas, p.observed.Add(-recentFor), delta.NumberInferred, delta.CauseHistoryReversed)
	if err != nil {
		return nil, fmt.Errorf("read the newest resource versions on record: %w", explain(err))
	}
	found := map[int32][]string{}
	var stream int32
	var rv string
	if _, err := pgx.ForEachRow(rows, []any{&stream, &rv}, func() error {
		found[stream] = append(found[stream], rv)
		return nil
	}); err != nil {
		return nil, fmt.Errorf("read the newest resource versions on record: %w", explain(err))
	}
	return found, nil
}

// unproven is how many versions of an earlier recorder are checked.
const unproven = 96

// A Version is one version of an object, as it was served when it was new.
type Version struct {
	Namespace, Name, UID, ResourceVersion string
	Observed                              time.Time
}

// findUnverified joins the lives last. Some minutes have many rows; the query takes a few of them, including the oldest.
// If a day is dropped, its batches may be gone; then its rows are gone, too. The query omits names that were cut,
// because the server does not know them.
const findUnverified = `
	SELECT d.stream, l.namespace, l.name, l.uid, d.rv, d.observed_at FROM (
		SELECT d.cluster, d.stream, d.object_id, d.rv, d.observed_at, row_number() OVER (ORDER BY d.seq DESC) - 1 AS n,
			count(*) FILTER (WHERE d.observed_at >= $3) OVER () AS total, row_number() OVER (PARTITION BY d.stream ORDER BY d.seq DESC) AS back
		FROM kuberewind.deltas_data d
		WHERE d.cluster = $1 AND d.seq > $2 AND d.observed_at >= $9 AND d.source = $4 AND d.type IN ($5, $6) AND NOT EXISTS (
			SELECT FROM kuberewind.gaps_data g LEFT JOIN kuberewind.batches b ON b.cluster = g.cluster AND b.batch = g.closed_batch
			WHERE g.cluster = d.cluster AND g.stream = d.stream AND g.cause = $7 AND (g.closed_batch IS NULL OR b.last_seq >= d.seq))) AS d
	JOIN kuberewind.lives l ON l.cluster = d.cluster AND l.object_id = d.object_id
	WHERE (d.observed_at >= $3 AND (d.total - 1 - d.n) % greatest((d.total + $8 - 1) / $8, 1) = 0 OR d.back = 1) AND position('…' in l.name) = 0 ORDER BY d.n DESC`

func (p *Prior) unverifiedArgs() []any {
	return []any{p.cluster, p.afterSeq - recentDeltas, p.verified, delta.NumberWatch, delta.NumberAdded, delta.NumberUpdated, delta.CauseHistoryReversed, unproven, p.verified.Add(-recentFor)}
}

// Unverified returns versions on record that perhaps no recorder has compared with etcd, by the number of their stream.
// It returns all of them, or some that are spread over that time. Etcd may have been rolled back to before the last
// comparison. So Unverified also returns the newest version of each stream in the ten minutes before it. It omits
// versions from before a rollback.
func (p *Prior) Unverified(ctx context.Context) (map[int32][]Version, error) {
	rows, err := p.pool.Query(ctx, findUnverified, p.unverifiedArgs()...)
	if err != nil {
		return nil, fmt.Errorf("read the newest versions on record: %w", explain(err))
	}
	found := map[int32][]Version{}
	var stream int32
	var v Version
	if _, err := pgx.ForEachRow(rows, []any{&stream, &v.Namespace, &v.Name, &v.UID, &v.ResourceVersion, &v.Observed}, func() error {
		found[stream] = append(found[stream], v)
		return nil
	}); err != nil {
		return nil, fmt.Errorf("read the newest versions on record: %w", explain(err))
	}
	return found, nil
}
