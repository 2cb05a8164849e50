package history

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/s2"

	"github.com/kuberewind/kuberewind/patch"
)

// A tail is what the deltas after a checkpoint say of the objects that they touch. Nothing is folded while it is read: an object
// needs its last keyframe, compressed, and the patches after it, and is folded once, by whoever has the version before.
type tail struct {
	point   *Point
	objects map[int64]*tailObject
	rows    int64
}

type tailObject struct {
	rows []tailRow
	dead bool
	late []tailRow // after the point's seq, not known yet to belong to it
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
	whole              []byte // s2 of the text of a keyframe
}

// readTail reads the rows after a seq that are in a scope and may belong to the point.
func (r *Record) readTail(ctx context.Context, db querier, p *Point, scope Scope, after int64, progress func(int64)) (*tail, error) {
	t := &tail{point: p, objects: make(map[int64]*tailObject)}
	last := max(p.Seq, p.Until)
	days, err := r.daysFrom(ctx, db, after+1, last)
	if err != nil {
		return nil, err
	}
	for i := range days {
		if err := r.present(ctx, db, &days[i]); err != nil {
			return nil, err
		}
		if err := t.day(ctx, db, r, &days[i], scope, after, last, progress); err != nil {
			return nil, fmt.Errorf("read the deltas of %s after seq %d: %w", days[i].day.Format(time.DateOnly), after, err)
		}
	}
	return t, nil
}

func (t *tail) day(ctx context.Context, db querier, r *Record, d *day, scope Scope, after, last int64, progress func(int64)) error {
	args := []any{r.cluster.Number, after, last, d.firstAt, d.lastAt}
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
	rows, err := db.Query(ctx, `
		SELECT seq, object_id, stream, observed_at, occurred_at, type, rv, version, digest, patch::text, object::text, exact
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
		case object != nil:
			packed = s2.Encode(packed[:cap(packed)], object)
			w.whole = append([]byte(nil), packed...)
		case change != nil:
			w.change = append([]byte(nil), change...)
		}
		t.add(id, &w)
		if t.rows++; progress != nil && t.rows%5000 == 0 {
			progress(t.rows)
		}
	}
	return rows.Err()
}

// add notes a row, if it belongs to the point.
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
		// One that occurred in time brings with it those before it, on which it was made.
		o.late = append(o.late, *w)
		if w.occurred.After(t.point.Time) {
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
	case w.kind == typeDeleted:
		o.dead, o.rows = true, nil
		return
	case w.whole != nil:
		o.rows = o.rows[:0]
	}
	o.rows = append(o.rows, *w)
}

// touched reports whether anything of the object belongs to the point.
func (o *tailObject) touched() bool { return o.dead || len(o.rows) > 0 }

func (o *tailObject) last() *tailRow { return &o.rows[len(o.rows)-1] }

// fold gives the last version. It compares only that with its digest: who finds it wrong folds the object from the deltas alone, step by step.
func (o *tailObject) fold(before patch.Doc) (patch.Doc, error) {
	doc := before
	for i := range o.rows {
		w := &o.rows[i]
		var whole []byte
		var err error
		if w.whole != nil {
			if whole, err = s2.Decode(nil, w.whole); err != nil {
				return nil, err
			}
		}
		if doc, err = fold(doc, w.rv, w.change, whole, nil); err != nil {
			return nil, err
		}
	}
	if patch.Digest(doc) != o.last().digest {
		return nil, ErrDigest
	}
	return doc, nil
}

// holds reports whether a row of a stream belongs to a point that was given as a resource version.
func (p *Point) holds(stream int32, seq int64, rv string) bool {
	at, ok := p.streams[stream]
	return ok && seq <= at.seq && (seq < at.from || notAfter(rv, p.RV))
}

// sure is the last seq up to which every row of a scope belongs to the point.
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
