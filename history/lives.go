package history

import (
	"context"
	"fmt"
	"iter"
	"strings"
)

// Lives yields lives in the order in which they began. If the query names a namespace, a name, UIDs or ObjectIDs, it reads
// an index. Otherwise it reads all lives on record, with their ends. It holds a connection while the caller works with the
// lives: if the pool has only one, no other query can run meanwhile.
func (r *Record) Lives(ctx context.Context, q LifeQuery) iter.Seq2[Life, error] {
	return r.view.lives(ctx, q, 0)
}

func (v *view) lives(ctx context.Context, q LifeQuery, id int64) iter.Seq2[Life, error] {
	return func(yield func(Life, error) bool) {
		if err := v.eachLife(ctx, q, id, func(l Life) bool { return yield(l, nil) }); err != nil {
			yield(Life{}, fmt.Errorf("read the lives of the record: %w", err))
		}
	}
}

func (v *view) eachLife(ctx context.Context, q LifeQuery, id int64, give func(Life) bool) error {
	set, err := v.readStreams(ctx)
	if err != nil {
		return err
	}
	if q.MayReferTo != nil {
		extent, err := v.extent(ctx)
		if err != nil {
			return err
		}
		q.ownersSince = extent.FirstSeq
	}
	sql, args := q.statement(v.cluster.Number, id, set)
	rows, err := v.db.Query(ctx, sql, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var l Life
		var stream int32
		if err := scanLife(rows, &l, &stream); err != nil {
			return err
		}
		if l.Stream = set.byID[stream]; l.Stream == nil {
			l.Stream = &Stream{ID: stream} // this stream is not on record: only its number is known
		}
		if !give(l) {
			return nil
		}
	}
	return rows.Err()
}

// statement fixes the plan if the query selects few lives: PostgreSQL then looks up their ends one by one. Otherwise the
// planner would read all ends of the record.
func (q *LifeQuery) statement(cluster int32, id int64, set streamSet) (string, []any) {
	args := []any{cluster}
	var born, ended strings.Builder
	also := func(where *strings.Builder, condition string, arg any) {
		args = append(args, arg)
		fmt.Fprintf(where, condition, len(args))
	}
	if id != 0 {
		also(&born, " AND object_id = $%d", id)
	}
	if q.Streams != nil {
		also(&born, " AND stream = ANY ($%d::int[])", q.Streams)
	}
	if q.Namespace != "" {
		also(&born, " AND namespace = $%d", q.Namespace)
	} else if q.Name != "" && set.clusterScoped(q.Streams) {
		born.WriteString(" AND namespace = ''") // The index begins with the namespace.
	}
	if q.Name != "" {
		also(&born, " AND name = $%d", q.Name)
	}
	if q.UID != "" {
		also(&born, " AND uid = $%d", q.UID)
	}
	if q.UIDs != nil {
		also(&born, " AND uid = ANY ($%d::text[])", q.UIDs)
	}
	if q.ObjectIDs != nil {
		also(&born, " AND object_id = ANY ($%d::bigint[])", q.ObjectIDs)
	}
	if of := q.MayReferTo; of != nil {
		args = append(args, of.UID, q.ownersSince, set.events(), of.Name+".")
		n := len(args)
		// client-go's recorders name an Event after its object: a dot, and the nanoseconds since 1970 in 16 hexadecimal digits.
		fmt.Fprintf(&born, ` AND (owners @> ARRAY[$%d::text] OR object_id < $%d
				OR stream = ANY ($%d::int[]) AND (starts_with(name, $%d) OR right(name, 17) !~ '^[.][0-9a-f]{16}$'))`, n-3, n-2, n-1, n)
	}
	if q.LiveAt != 0 {
		also(&born, " AND object_id <= $%d", q.LiveAt)
		also(&ended, " AND (deleted_seq IS NULL OR deleted_seq > $%d)", q.LiveAt)
	}
	if q.BornBy != 0 {
		also(&born, " AND object_id <= $%d", q.BornBy)
		also(&ended, " AND (deleted_seq IS NULL OR deleted_seq > $%d)", q.EndedAfter)
	}
	if id == 0 && q.Namespace == "" && q.Name == "" && q.UID == "" && q.UIDs == nil && q.ObjectIDs == nil && q.MayReferTo == nil {
		return `SELECT object_id, stream, namespace, name, uid, coalesce(deleted_seq, 0)
			FROM kuberewind.record_lives WHERE cluster = $1` + born.String() + ended.String() + ` ORDER BY object_id`, args
	}
	return `WITH born AS MATERIALIZED (
			SELECT cluster, object_id, stream, namespace, name, uid FROM kuberewind.record_lives WHERE cluster = $1` + born.String() + `
		)
		SELECT b.object_id, b.stream, b.namespace, b.name, b.uid, coalesce(e.deleted_seq, 0)
		FROM born b
		LEFT JOIN LATERAL (
			SELECT seq AS deleted_seq FROM kuberewind.record_ends WHERE cluster = b.cluster AND object_id = b.object_id LIMIT 1
		) e ON true
		WHERE true` + ended.String() + ` ORDER BY b.object_id`, args
}

// identities finds lives by their numbers, without their ends.
func (v *view) identities(ctx context.Context, streams streamSet, ids []int64) (map[int64]*Life, error) {
	lives := make(map[int64]*Life, len(ids))
	if len(ids) == 0 {
		return lives, nil
	}
	rows, err := v.db.Query(ctx, `
		SELECT object_id, stream, namespace, name, uid, 0
		FROM kuberewind.record_lives WHERE cluster = $1 AND object_id = ANY ($2::bigint[])`, v.cluster.Number, ids)
	if err != nil {
		return nil, fmt.Errorf("read the lives of the record: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		l := new(Life)
		var stream int32
		if err := scanLife(rows, l, &stream); err != nil {
			return nil, err
		}
		l.Stream = streams.byID[stream]
		lives[l.ObjectID] = l
	}
	return lives, rows.Err()
}
