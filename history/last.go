package history

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kuberewind/kuberewind/internal/fold"
	"github.com/kuberewind/kuberewind/patch"
)

// A target is an object whose version at a seq the finder looks for.
type target struct {
	id    int64
	bound int64 // last seq that counts
	from  int64 // rows from this seq on count by their resource version; earlier rows always count
}

// A lastVersion is the newest version of an object within the bounds of a target.
type lastVersion struct {
	id, seq            int64
	observed, occurred time.Time
	kind               int16
	rv, version        string
	digest             []byte
	doc                patch.Doc
	err                error // why there is no doc; seq is then the damaged row
}

// lastChunk is the number of objects in one query: the server sorts their rows.
const lastChunk = 500

// A finder folds objects from their deltas alone.
//
// All rows that the last version of an object needs are in one partition, because the first row of a life in a day is a
// keyframe (I8). So find begins at the newest day and reads one partition with each query. It stops looking for an object
// once it has found it.
type finder struct {
	view    *view
	rv      string // rows beyond this resource version do not count; "" for no bound
	workers int
}

// find calls give with the newest version of each target, from as many goroutines as there are workers. Targets are sorted
// by id and days by seq. It returns the targets without a row. A day whose partition is gone is an error only if it may
// hold a target.
func (f *finder) find(ctx context.Context, targets []target, days []Day, give func(*lastVersion) error) ([]target, error) {
	for i := len(days) - 1; i >= 0 && len(targets) > 0; i-- {
		missing, err := f.day(ctx, targets, &days[i], give)
		if err != nil {
			return nil, err
		}
		targets = missing
	}
	return targets, nil
}

func (f *finder) day(ctx context.Context, targets []target, d *Day, give func(*lastVersion) error) ([]target, error) {
	var missing, inside []target
	for _, t := range targets {
		if t.id > d.LastSeq || t.bound < d.FirstSeq {
			missing = append(missing, t)
			continue
		}
		inside = append(inside, t)
	}
	if len(inside) == 0 {
		return missing, nil
	}
	if err := f.view.present(ctx, d); err != nil {
		return nil, err
	}
	chunks := slices.Collect(slices.Chunk(inside, lastChunk))
	left := make([][]target, len(chunks))
	work, workCtx := errgroup.WithContext(ctx)
	work.SetLimit(max(f.workers, 1))
	for i, chunk := range chunks {
		work.Go(func() (err error) {
			left[i], err = f.chunk(workCtx, chunk, d, give)
			return err
		})
	}
	if err := work.Wait(); err != nil {
		return nil, err
	}
	for _, l := range left {
		missing = append(missing, l...)
	}
	slices.SortFunc(missing, func(a, b target) int { return int(min(max(a.id-b.id, -1), 1)) })
	return missing, nil
}

// lastQuery selects the last keyframe of each object within the bounds, and the rows after it. If an object has no
// keyframe, it selects all its rows, so that the caller notices.
//
// Today's partition grows faster than PostgreSQL analyses it, and the planner expects few rows for seqs beyond its
// statistics. So the query forces the plan. MATERIALIZED and OFFSET 0 keep the order of the steps. seq + 0 keeps the
// planner off the index by seq, which would read the rows of every other object.
var lastQuery = `
	WITH starts AS MATERIALIZED (
		SELECT o.*, coalesce(keyframe.seq, 0) AS start
		FROM unnest($2::bigint[], $3::bigint[], $4::bigint[]) AS o (object_id, bound, free)
		LEFT JOIN LATERAL (
			SELECT seq FROM kuberewind.record_deltas
			WHERE cluster = $1 AND object_id = o.object_id AND seq <= o.bound AND object IS NOT NULL AND observed_at BETWEEN $5 AND $6
				AND (seq < o.free OR ` + fmt.Sprintf(rvCounts, 7) + `)
			ORDER BY seq DESC LIMIT 1
		) AS keyframe ON true
	)
	SELECT d.object_id, d.seq, d.observed_at, d.occurred_at, d.type, d.rv, d.version, d.digest, d.patch::text, d.object::text, d.exact
	FROM starts o
	CROSS JOIN LATERAL (
		SELECT * FROM kuberewind.record_deltas
		WHERE cluster = $1 AND object_id = o.object_id AND seq <= o.bound AND seq + 0 >= o.start
			AND observed_at BETWEEN $5 AND $6
			AND (seq < o.free OR ` + fmt.Sprintf(rvCounts, 7) + `)
		OFFSET 0
	) AS d
	ORDER BY d.object_id, d.seq`

func (f *finder) chunk(ctx context.Context, chunk []target, d *Day, give func(*lastVersion) error) (missing []target, err error) {
	ids, bounds, free := make([]int64, len(chunk)), make([]int64, len(chunk)), make([]int64, len(chunk))
	for i, t := range chunk {
		ids[i], bounds[i], free[i] = t.id, t.bound, t.from
	}
	rows, err := f.view.db.Query(ctx, lastQuery, f.view.cluster.Number, ids, bounds, free, d.FirstAt, d.LastAt, f.rv)
	if err != nil {
		return nil, f.failed(d, err)
	}
	defer rows.Close()
	found := make(map[int64]bool, len(chunk))
	var last lastVersion
	finish := func() error {
		if last.id == 0 {
			return nil
		}
		found[last.id] = true
		return give(&last)
	}
	for rows.Next() {
		var next lastVersion
		var change, object, exact pgText
		if err := rows.Scan(&next.id, &next.seq, &next.observed, &next.occurred, &next.kind, &next.rv, &next.version, &next.digest, &change, &object, &exact); err != nil {
			return nil, f.failed(d, err)
		}
		switch {
		case next.id != last.id:
			if err := finish(); err != nil {
				return nil, err
			}
		case last.err != nil:
			last.kind = next.kind // a later deletion still counts
			continue
		default:
			next.doc = last.doc
		}
		next.doc, next.err = fold.Row{RV: next.rv, Patch: change, Object: object, Exact: exact}.Checked(next.doc, next.digest)
		last = next
	}
	if err := rows.Err(); err != nil {
		return nil, f.failed(d, err)
	}
	if err := finish(); err != nil {
		return nil, err
	}
	for _, t := range chunk {
		if !found[t.id] {
			missing = append(missing, t)
		}
	}
	return missing, nil
}

func (f *finder) failed(d *Day, err error) error {
	return fmt.Errorf("fold objects from the deltas of %s: %w", d.Day.Format(time.DateOnly), err)
}
