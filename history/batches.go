package history

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// Rows are read in batches. No connection is held while the caller works with them, because a reading may last for hours. A
// batch begins small and doubles while it stays below half of batchBytes.
const (
	firstBatch = 100
	knownBatch = 1000 // for named lives: each batch sorts all their remaining rows
	maxBatch   = 4000
	batchBytes = 4 << 20
)

// A deltaReader runs a Query through the days.
type deltaReader struct {
	view  *view // through the pool
	q     Query
	kinds []int16
	ids   []int64 // requested lives; nil means all
	empty bool    // nothing can match
	head  int64   // last seq of the record
	limit int
}

func newDeltaReader(ctx context.Context, v *view, q Query) (*deltaReader, error) {
	kinds, err := typeNumbers(q.Types)
	if err != nil {
		return nil, err
	}
	head, err := v.extent(ctx)
	if err != nil {
		return nil, err
	}
	if q.ToSeq == 0 {
		q.ToSeq = math.MaxInt64
	}
	q.ToSeq = min(q.ToSeq, head.LastSeq)
	g := &deltaReader{view: v, q: q, kinds: kinds, head: head.LastSeq, limit: firstBatch}
	if q.ObjectIDs != nil {
		g.ids, g.empty, g.limit = q.ObjectIDs, len(q.ObjectIDs) == 0, knownBatch
		if !g.empty {
			g.q.FromSeq = max(q.FromSeq, slices.Min(q.ObjectIDs))
		}
		return g, nil
	}
	if q.ObjectID == 0 && q.Name == "" && q.UID == "" {
		return g, nil
	}
	first, last := int64(math.MaxInt64), int64(0)
	for life, err := range v.lives(ctx, LifeQuery{Scope: q.Scope, UID: q.UID}, q.ObjectID) {
		if err != nil {
			return nil, err
		}
		g.ids = append(g.ids, life.ObjectID)
		first = min(first, life.ObjectID)
		if life.DeletedSeq == 0 {
			life.DeletedSeq = math.MaxInt64
		}
		last = max(last, life.DeletedSeq)
	}
	g.empty = len(g.ids) == 0
	g.q.FromSeq, g.q.ToSeq = max(q.FromSeq, first), min(q.ToSeq, last)
	return g, nil
}

// batches yields the rows in order. After an error about one day or some rows, it continues with the next ones if the
// caller does.
func (g *deltaReader) batches(ctx context.Context) iter.Seq2[[]Row, error] {
	return func(yield func([]Row, error) bool) {
		if g.empty {
			return
		}
		days, err := g.view.daysFrom(ctx, g.q.FromSeq, g.q.ToSeq)
		if err != nil {
			yield(nil, err)
			return
		}
		for i := range days {
			if !g.day(ctx, &days[i], yield) {
				return
			}
		}
	}
}

func (g *deltaReader) day(ctx context.Context, d *Day, yield func([]Row, error) bool) bool {
	from, until := d.FirstAt, d.LastAt
	if g.q.From.After(from) {
		from = g.q.From
	}
	if !g.q.To.IsZero() && g.q.To.Before(until) {
		until = g.q.To
	}
	if until.Before(from) {
		return true
	}
	if err := g.view.present(ctx, d); err != nil {
		return yield(nil, err) && isMissingDay(err)
	}
	return g.read(ctx, d, from, until, yield)
}

// read yields the rows of one day.
func (g *deltaReader) read(ctx context.Context, d *Day, from, until time.Time, yield func([]Row, error) bool) bool {
	after, last := max(g.q.FromSeq, d.FirstSeq)-1, min(g.q.ToSeq, d.LastSeq)
	for after < last {
		rows, complete, err := g.batch(ctx, after, last, from, until)
		if err != nil {
			yield(nil, fmt.Errorf("read the deltas of %s after seq %d: %w", d.Day.Format(time.DateOnly), after, err))
			return false
		}
		if len(rows) > 0 {
			after = rows[len(rows)-1].Seq
			if !yield(rows, nil) {
				return false
			}
		}
		if complete {
			return true
		}
	}
	return true
}

func isMissingDay(err error) bool {
	var missing *MissingDayError
	return errors.As(err, &missing)
}

// eachLifesDeltas reads the deltas of some lives by the index on lives. Without it, the planner may choose the index by seq
// and read the deltas of all other lives. OFFSET 0 prevents that.
const eachLifesDeltas = `unnest($%d::bigint[]) AS o (id)
		CROSS JOIN LATERAL (
			SELECT * FROM kuberewind.record_deltas
			WHERE cluster = $1 AND object_id = o.id AND seq > $2 AND seq <= $3 AND observed_at BETWEEN $4 AND $5
			OFFSET 0
		) AS d`

func (g *deltaReader) query(after, last int64, from, until time.Time) (string, []any) {
	args := []any{g.view.cluster.Number, after, last, from, until, g.limit}
	source, where := "kuberewind.record_deltas d", new(strings.Builder)
	also := func(condition string, arg any) {
		args = append(args, arg)
		fmt.Fprintf(where, condition, len(args))
	}
	if g.q.Streams != nil {
		also(" AND d.stream = ANY ($%d::int[])", g.q.Streams)
	}
	switch {
	case len(g.ids) == 1:
		also(" AND d.object_id = $%d", g.ids[0])
	case g.ids != nil:
		args = append(args, g.ids)
		source = fmt.Sprintf(eachLifesDeltas, len(args))
	case g.q.Namespace != "":
		also(" AND l.namespace = $%d", g.q.Namespace)
	}
	if g.kinds != nil {
		also(" AND d.type = ANY ($%d::smallint[])", g.kinds)
	}
	return `SELECT ` + rowColumns + `, ` + lifeColumns + `
		FROM ` + source + joinLives + `
		WHERE d.cluster = $1 AND d.seq > $2 AND d.seq <= $3 AND d.observed_at BETWEEN $4 AND $5` + where.String() + `
		ORDER BY d.seq LIMIT $6`, args
}

// batch reads the next rows; complete says that no more follow up to last.
func (g *deltaReader) batch(ctx context.Context, after, last int64, from, until time.Time) (batch []Row, complete bool, err error) {
	sql, args := g.query(after, last, from, until)
	rows, err := g.view.db.Query(ctx, sql, args...)
	if err != nil {
		return nil, false, err
	}
	defer rows.Close()
	size := 0
	for rows.Next() {
		var w Row
		if err := w.scan(rows); err != nil {
			return nil, false, err
		}
		batch = append(batch, w)
		if size += w.size(); size > batchBytes {
			// The next batch reads the rows after this one again.
			g.limit = max(g.limit/2, firstBatch)
			return batch, false, nil
		}
	}
	complete = len(batch) < g.limit
	if size < batchBytes/2 {
		g.limit = min(2*g.limit, maxBatch)
	}
	return batch, complete, rows.Err()
}

// scanLife scans a row of lives or identities.
func scanLife(rows pgx.Rows, l *Life, stream *int32) error {
	return rows.Scan(&l.ObjectID, stream, &l.Namespace, &l.Name, &l.UID, &l.DeletedSeq)
}
