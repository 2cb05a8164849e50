package known

import (
	"context"
	"fmt"

	"github.com/kuberewind/kuberewind/history"
)

// recentDeltas is the number of deltas in which managers are searched. The query takes some hundredths of a second.
const recentDeltas = 20_000

// Managers returns the field managers that are proved writers of the latest deltas, up to a seq (0: the end of the record).
// It does not return a manager that wrote only earlier, because no index covers managers.
func Managers(ctx context.Context, rec *history.Record, upTo int64) ([]string, error) {
	found, err := words(ctx, rec, `
		WITH stretch AS (
			SELECT min(first_at) AS first_at, max(last_at) AS last_at, max(last) AS last
			FROM (
				SELECT y.first_at, y.last_at, h.last FROM kuberewind.record_days y
				CROSS JOIN (SELECT CASE $2::bigint WHEN 0 THEN seq ELSE $2::bigint END AS last FROM kuberewind.record_heads WHERE cluster = $1) h
				WHERE y.cluster = $1 AND y.first_seq <= h.last AND y.last_seq > h.last - $3
			) days
		)
		SELECT DISTINCT d.manager
		FROM stretch s
		JOIN kuberewind.record_deltas d ON d.cluster = $1 AND d.seq > s.last - $3 AND d.seq <= s.last AND d.observed_at BETWEEN s.first_at AND s.last_at
		WHERE d.manager IS NOT NULL ORDER BY d.manager`, rec.Cluster().Number, upTo, int64(recentDeltas))
	if err != nil {
		return nil, fmt.Errorf("read managers: %w", err)
	}
	return found, nil
}

// An Object is a named object, in all its lives.
type Object struct {
	Streams         []int32
	Namespace, Name string
}

// ManagersOf returns the field managers that are proved writers of an object.
func ManagersOf(ctx context.Context, rec *history.Record, o Object) ([]string, error) {
	found, err := words(ctx, rec, `
		SELECT DISTINCT manager FROM (
			SELECT d.manager
			FROM kuberewind.record_lives l
			JOIN kuberewind.record_deltas d ON d.cluster = l.cluster AND d.object_id = l.object_id
			WHERE l.cluster = $1 AND l.stream = ANY ($2::int[]) AND l.name = $4 AND ($3 = '' OR l.namespace = $3) AND d.manager IS NOT NULL
			ORDER BY l.object_id DESC, d.seq DESC LIMIT $5
		) written ORDER BY manager`, rec.Cluster().Number, o.Streams, o.Namespace, o.Name, recentDeltas)
	if err != nil {
		return nil, fmt.Errorf("read the managers of %s: %w", o.Name, err)
	}
	return found, nil
}
