package history

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/s2"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/internal/fold"
	"github.com/kuberewind/kuberewind/patch"
)

// A tail holds the deltas after a checkpoint, by object. Reading a tail folds nothing. An object needs the patches since
// its last row without one. The reader that has the earlier version folds the object once.
type tail struct {
	point   *Point
	objects map[int64]*tailObject
	rows    int64
}

type tailObject struct {
	rows []tailRow
	dead bool
	late []tailRow // after the point's seq; whether they belong to the point is not known yet
	seen bool      // it was in the checkpoint
}

type tailRow struct {
	seq                int64
	observed, occurred time.Time
	stream             int32
	kind               int16
	rv, version        string
	digest             [16]byte
	change             []byte
	whole              []byte // s2 of the text, of a row without a patch
}

// readTail reads the rows after a seq that are in a scope and may belong to the point. It runs within a transaction.
func readTail(ctx context.Context, v *view, p *Point, scope Scope, after int64, progress func(int64)) (*tail, error) {
	t := &tail{point: p, objects: make(map[int64]*tailObject)}
	last := max(p.Seq, p.Until)
	days, err := v.daysFrom(ctx, after+1, last)
	if err != nil {
		return nil, err
	}
	// The table stores the rows of a tail next to each other in the order of their seqs, and the index has that order.
	// Otherwise the planner sorts them, with their texts, on disk.
	if err := alongIndex(ctx, v.db, true); err != nil {
		return nil, err
	}
	for i := range days {
		if err := v.present(ctx, &days[i]); err != nil {
			return nil, err
		}
		if err := t.day(ctx, v, &days[i], scope, after, last, progress); err != nil {
			return nil, fmt.Errorf("read the deltas of %s after seq %d: %w", days[i].Day.Format(time.DateOnly), after, err)
		}
	}
	return t, alongIndex(ctx, v.db, false)
}

// alongIndex forbids the planner, within the transaction, to sort or to use a bitmap scan; or allows both again.
func alongIndex(ctx context.Context, tx querier, only bool) error {
	_, err := tx.Exec(ctx, `SELECT set_config('enable_sort', $1, true), set_config('enable_bitmapscan', $1, true)`, strconv.FormatBool(!only))
	if err != nil {
		return fmt.Errorf("set the plan for reading the deltas: %w", err)
	}
	return nil
}

// day reads the rows of one day. It reads the whole object only from a row without a patch. For a row with a patch, the
// reader has the earlier version.
func (t *tail) day(ctx context.Context, v *view, d *Day, scope Scope, after, last int64, progress func(int64)) error {
	args := []any{v.cluster.Number, after, last, d.FirstAt, d.LastAt}
	var where strings.Builder
	if scope.Streams != nil {
		args = append(args, scope.Streams)
		fmt.Fprintf(&where, " AND stream = ANY ($%d::int[])", len(args))
	}
	if scope.Namespace != "" {
		args = append(args, scope.Namespace)
		fmt.Fprintf(&where, ` AND EXISTS (
			SELECT FROM kuberewind.record_lives l WHERE l.cluster = d.cluster AND l.object_id = d.object_id AND l.namespace = $%d)`, len(args))
	}
	rows, err := v.db.Query(ctx, `
		SELECT seq, object_id, stream, observed_at, occurred_at, type, rv, version, digest, patch::text,
			CASE WHEN patch IS NULL THEN object::text END, CASE WHEN patch IS NULL THEN exact END
		FROM kuberewind.record_deltas d
		WHERE cluster = $1 AND seq > $2 AND seq <= $3 AND observed_at BETWEEN $4 AND $5`+where.String()+` ORDER BY seq`, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	var packed []byte
	for rows.Next() {
		var w tailRow
		var id int64
		var digest, change, object, exact pgText
		if err := rows.Scan(&w.seq, &id, &w.stream, &w.observed, &w.occurred, &w.kind, &w.rv, &w.version, &digest, &change, &object, &exact); err != nil {
			return err
		}
		copy(w.digest[:], digest)
		if exact != nil {
			object = exact
		}
		switch {
		case change != nil:
			w.change = append([]byte(nil), change...)
		case object != nil:
			packed = s2.Encode(packed[:cap(packed)], object)
			w.whole = append([]byte(nil), packed...)
		}
		t.add(id, &w)
		if t.rows++; progress != nil && t.rows%5000 == 0 {
			progress(t.rows)
		}
	}
	return rows.Err()
}

// add keeps a row if it belongs to the point.
func (t *tail) add(id int64, w *tailRow) {
	late := false
	if t.point.RV != "" {
		if !t.point.holds(w.stream, w.seq, w.rv) {
			return
		}
	} else {
		late = w.seq > t.point.Seq
	}
	o := t.objects[id]
	if o == nil {
		o = new(tailObject)
		t.objects[id] = o
	}
	if late {
		// The earlier rows of an object belong to the point if this one does: it was made on them.
		o.late = append(o.late, *w)
		if !t.point.by(w.seq, w.occurred) {
			return
		}
		for i := range o.late {
			o.put(&o.late[i])
		}
		o.late = nil
		return
	}
	o.put(w)
}

func (o *tailObject) put(w *tailRow) {
	switch {
	case w.kind == delta.NumberDeleted:
		o.dead, o.rows = true, nil
		return
	case w.whole != nil:
		o.rows = o.rows[:0]
	}
	o.rows = append(o.rows, *w)
}

// touched reports whether any row of the object belongs to the point.
func (o *tailObject) touched() bool { return o.dead || len(o.rows) > 0 }

func (o *tailObject) last() *tailRow { return &o.rows[len(o.rows)-1] }

// fold returns the last version. It applies the patches as one, and compares only the result with a digest. If they differ,
// the caller folds the object from the deltas alone, step by step.
func (o *tailObject) fold(before patch.Doc) (patch.Doc, error) {
	doc, rows := before, o.rows
	if rows[0].whole != nil {
		whole, err := s2.Decode(nil, rows[0].whole)
		if err != nil {
			return nil, err
		}
		if doc, err = patch.Canonical(whole); err != nil {
			return nil, err
		}
		rows = rows[1:]
	}
	if len(doc) == 0 {
		return nil, ErrNoKeyframe
	}
	if len(rows) > 0 {
		joined, err := joinedPatches(rows)
		if err != nil {
			return nil, err
		}
		if doc, err = (fold.Row{RV: o.last().rv, Patch: joined}).Onto(doc); err != nil {
			return nil, err
		}
	}
	if patch.Digest(doc) != o.last().digest {
		return nil, ErrDigest
	}
	return doc, nil
}

// joinedPatches joins the patches of several rows into one patch with the same result. The last row overwrites the resource
// versions of the rows between.
func joinedPatches(rows []tailRow) ([]byte, error) {
	if len(rows) == 1 && rows[0].change != nil {
		return rows[0].change, nil
	}
	size := 2
	for i := range rows {
		size += len(rows[i].change)
	}
	joined := append(make([]byte, 0, size), '[')
	for i := range rows {
		change := rows[i].change
		if len(change) < 2 || change[0] != '[' {
			return nil, errNoPatch
		}
		if operations := change[1 : len(change)-1]; len(operations) > 0 {
			if len(joined) > 1 {
				joined = append(joined, ',')
			}
			joined = append(joined, operations...)
		}
	}
	return append(joined, ']'), nil
}

var errNoPatch = errors.New("a row of the tail has no patch")

// holds reports whether a row of a stream belongs to a point by resource version.
func (p *Point) holds(stream int32, seq int64, rv string) bool {
	at, ok := p.streams[stream]
	return ok && seq <= at.seq && (seq < at.from || !delta.Precedes(p.RV, rv))
}

// sure returns the last seq up to which every row of a scope belongs to the point.
func (p *Point) sure(scope Scope) int64 {
	if p.RV == "" {
		return p.Seq
	}
	sure := p.Seq
	for id, at := range p.streams {
		if scope.Streams == nil || slices.Contains(scope.Streams, id) {
			sure = min(sure, at.sure)
		}
	}
	return sure
}
