package known

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/kuberewind/kuberewind/history"
)

// Most is how many words an answer has.
const Most = 1000

// Lives say which objects are meant. Empty values do not bound, but Streams: no stream holds nothing.
type Lives struct {
	Streams           []int32
	Namespace, Prefix string
	// From and To are seqs: the objects that lived at some moment between the two, both included. Two zeros mean now.
	From, To int64
}

// livingNames looks up each life that goes on. LIMIT 1 keeps the planner from reading all lives of a prefix instead.
const livingNames = `
	SELECT DISTINCT l.name
	FROM kuberewind.record_living a
	CROSS JOIN LATERAL (SELECT namespace, name FROM kuberewind.record_lives l WHERE l.cluster = a.cluster AND l.object_id = a.object_id LIMIT 1) l
	WHERE a.cluster = $1 AND a.stream = ANY ($2::int[]) AND ($3 = '' OR l.namespace = $3) AND starts_with(l.name, $4)
	ORDER BY l.name LIMIT $5`

// namesThen looks up each life of an instant, whether it goes on or has ended since. All ends are read, which are narrow rows,
// but few lives. LIMIT 1 as above.
const namesThen = `
	WITH alive AS MATERIALIZED (
		SELECT cluster, object_id FROM kuberewind.record_living WHERE cluster = $1 AND stream = ANY ($2::int[]) AND object_id <= $6
		UNION ALL
		SELECT cluster, object_id FROM kuberewind.record_ends WHERE cluster = $1 AND object_id <= $6 AND seq > $6
	)
	SELECT DISTINCT l.name
	FROM alive a
	CROSS JOIN LATERAL (SELECT stream, namespace, name FROM kuberewind.record_lives l WHERE l.cluster = a.cluster AND l.object_id = a.object_id LIMIT 1) l
	WHERE l.stream = ANY ($2::int[]) AND ($3 = '' OR l.namespace = $3) AND starts_with(l.name, $4)
	ORDER BY l.name LIMIT $5`

// pastNames is for a stretch of time. It reads the lives that had begun by then: no index leads to the lives that have ended
// since. They are read before they are sorted; else the planner goes through all names in order, and looks up the end of each.
const pastNames = `
	WITH alive AS MATERIALIZED (
		SELECT l.name
		FROM kuberewind.record_lives l
		WHERE l.cluster = $1 AND l.stream = ANY ($2::int[]) AND ($3 = '' OR l.namespace = $3) AND starts_with(l.name, $4)
			AND l.object_id <= $7 AND (l.deleted_seq IS NULL OR l.deleted_seq > $6)
	)
	SELECT DISTINCT name FROM alive ORDER BY name LIMIT $5`

// Names gives the names of objects, in order, and whether there are more.
func Names(ctx context.Context, rec *history.Record, q Lives) (names []string, more bool, err error) {
	sql, args := livingNames, []any{rec.Cluster().Number, q.Streams, q.Namespace, q.Prefix, Most + 1}
	switch {
	case q.To != 0 && q.To == q.From:
		sql, args = namesThen, append(args, q.To)
	case q.To != 0:
		sql, args = pastNames, append(args, q.From, q.To)
	}
	names, err = words(ctx, rec, sql, args...)
	if err != nil {
		return nil, false, fmt.Errorf("read names of objects: %w", err)
	}
	return names[:min(len(names), Most)], len(names) > Most, nil
}

func words(ctx context.Context, rec *history.Record, sql string, args ...any) ([]string, error) {
	rows, err := rec.Pool().Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// Newest gives the objects of a stream that were made last, and live.
func Newest(ctx context.Context, rec *history.Record, stream int32, namespace string, most int) ([]Object, error) {
	rows, err := rec.Pool().Query(ctx, `
		SELECT l.namespace, l.name
		FROM kuberewind.record_living a
		JOIN kuberewind.record_lives l ON l.cluster = a.cluster AND l.object_id = a.object_id
		WHERE a.cluster = $1 AND a.stream = $2 AND ($3 = '' OR l.namespace = $3)
		ORDER BY a.object_id DESC LIMIT $4`, rec.Cluster().Number, stream, namespace, most)
	if err != nil {
		return nil, fmt.Errorf("read the newest objects: %w", err)
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (o Object, err error) {
		o.Streams = []int32{stream}
		return o, row.Scan(&o.Namespace, &o.Name)
	})
}
