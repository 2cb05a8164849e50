package known

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/kuberewind/kuberewind/history"
)

// Most is the maximum number of words in an answer.
const Most = 1000

// Lives selects objects. An empty field selects all, except Streams: without streams, nothing is selected.
type Lives struct {
	Streams           []int32
	Namespace, Prefix string
	// From and To are seqs. They select the objects that lived at some moment between the two, both included. Two zeros mean
	// now.
	From, To int64
}

// livingNames looks up each living object. With LIMIT 1, the planner does not read all lives of a prefix instead.
const livingNames = `
	SELECT DISTINCT l.name
	FROM kuberewind.record_living a
	CROSS JOIN LATERAL (SELECT namespace, name FROM kuberewind.record_lives l WHERE l.cluster = a.cluster AND l.object_id = a.object_id LIMIT 1) l
	WHERE a.cluster = $1 AND a.stream = ANY ($2::int[]) AND ($3 = '' OR l.namespace = $3) AND starts_with(l.name, $4)
	ORDER BY l.name LIMIT $5`

// namesThen looks up each life at an instant, also if it has ended since. It reads all ends, which are narrow rows, but few
// lives. LIMIT 1 as above.
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

// pastNames returns the names of a time range. It reads all lives that had begun by its end, because no index finds the
// lives that have ended since. MATERIALIZED makes PostgreSQL read them before it sorts them; otherwise the planner reads all
// names in order, and looks up the end of each.
const pastNames = `
	WITH alive AS MATERIALIZED (
		SELECT l.name
		FROM kuberewind.record_lives l
		WHERE l.cluster = $1 AND l.stream = ANY ($2::int[]) AND ($3 = '' OR l.namespace = $3) AND starts_with(l.name, $4)
			AND l.object_id <= $7 AND (l.deleted_seq IS NULL OR l.deleted_seq > $6)
	)
	SELECT DISTINCT name FROM alive ORDER BY name LIMIT $5`

// Names returns the names of objects, in order, and whether there are more.
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

// Newest returns the newest living objects of a stream.
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
