package history

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/kuberewind/kuberewind/delta"
)

// fromDeltas finds the objects that were live at the point.
func (b *rebuilding) fromDeltas(ctx context.Context, v *view) (*search, error) {
	bounds, err := b.caughtUp(ctx, v)
	if err != nil {
		return nil, err
	}
	lives := make(map[int64]*Life)
	var targets []target
	sure, last := b.point.sure(b.scope), max(b.point.Seq, b.point.Until)
	q := LifeQuery{Scope: b.scope, BornBy: last, EndedAfter: sure}
	sql, args := q.statement(v.cluster.Number, 0, b.streams)
	rows, err := v.db.Query(ctx, sql, args...)
	if err != nil {
		return nil, fmt.Errorf("read the lives of the record: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		l := new(Life)
		var stream int32
		if err := scanLife(rows, l, &stream); err != nil {
			return nil, fmt.Errorf("read the lives of the record: %w", err)
		}
		bound := max(b.point.Seq, bounds[l.ObjectID])
		if l.ObjectID > bound {
			continue
		}
		l.Stream = b.streams.byID[stream]
		lives[l.ObjectID] = l
		targets = append(targets, target{id: l.ObjectID, bound: bound})
		if l.ObjectID > b.point.Seq {
			b.addSuccessor(l)
		}
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read the lives of the record: %w", err)
	}
	targets = slices.DeleteFunc(targets, func(t target) bool { return b.replaced(lives[t.id]) })
	return &search{lives: lives, targets: targets}, nil
}

// caughtUp returns the last delta that belongs to the point, for each object with recovered deltas after the point's seq.
func (b *rebuilding) caughtUp(ctx context.Context, v *view) (map[int64]int64, error) {
	bounds := make(map[int64]int64)
	if b.point.Until <= b.point.Seq {
		return bounds, nil
	}
	in, out := b.point.crossings()
	days, err := v.daysFrom(ctx, b.point.Seq+1, b.point.Until)
	if err != nil {
		return nil, err
	}
	for i := range days {
		d := &days[i]
		if err := v.present(ctx, d); err != nil {
			return nil, err
		}
		rows, err := v.db.Query(ctx, `
			SELECT object_id, max(seq) FROM kuberewind.record_deltas
			WHERE cluster = $1 AND seq > $2 AND seq <= $3 AND observed_at BETWEEN $4 AND $5
				AND (occurred_at <= $6 AND seq <> ALL ($8::bigint[]) OR seq = ANY ($7::bigint[]))
			GROUP BY object_id`, v.cluster.Number, b.point.Seq, b.point.Until, d.FirstAt, d.LastAt, b.point.Time, in, out)
		if err != nil {
			return nil, err
		}
		var id, seq int64
		if _, err := pgx.ForEachRow(rows, []any{&id, &seq}, func() error {
			bounds[id] = seq
			return nil
		}); err != nil {
			return nil, fmt.Errorf("read the recovered deltas: %w", err)
		}
	}
	return bounds, nil
}

// findAll folds objects from their deltas and emits those that live.
func (b *rebuilding) findAll(ctx context.Context, v *view, workers int, s *search) error {
	lives, targets := s.lives, s.targets
	if len(targets) == 0 {
		return nil
	}
	slices.SortFunc(targets, func(x, y target) int { return cmp.Compare(x.id, y.id) })
	last := int64(0)
	for i := range targets {
		t := &targets[i]
		if l := lives[t.id]; b.point.RV != "" && l != nil && l.Stream != nil {
			at := b.point.streams[l.Stream.ID]
			t.bound, t.from = min(t.bound, at.seq), at.from
		}
		last = max(last, t.bound)
	}
	days, err := v.daysFrom(ctx, targets[0].id, last)
	if err != nil {
		return err
	}
	find := finder{view: v, rv: b.point.RV, workers: workers}
	total := int64(len(targets))
	missing, err := find.find(ctx, targets, days, func(last *lastVersion) error {
		b.report("objects", b.objects.Load(), total)
		return b.found(lives[last.id], last)
	})
	if err != nil {
		return err
	}
	return b.notFound(lives, missing)
}

func (b *rebuilding) found(l *Life, v *lastVersion) error {
	if l == nil {
		l = &Life{ObjectID: v.id}
	}
	if v.kind == delta.NumberDeleted {
		return nil // also if its last version is on another day
	}
	if v.err != nil {
		return b.reportDamaged(&DamagedError{Seq: v.seq, ObjectID: v.id, Stream: l.Stream, Namespace: l.Namespace, Name: l.Name, Root: v.seq, Err: v.err})
	}
	object := l.object()
	object.Seq, object.RV, object.Version, object.Doc = v.seq, v.rv, v.version, v.doc
	object.ObservedAt, object.OccurredAt = v.observed.UTC(), v.occurred.UTC()
	return b.give(&object)
}

// notFound reports objects that lived, but have no row. For a point by resource version that may be right: a list may have
// shown them first in a later version.
func (b *rebuilding) notFound(lives map[int64]*Life, missing []target) error {
	for _, t := range missing {
		l := lives[t.id]
		if l == nil || l.ObjectID > b.point.sure(b.scope) {
			continue
		}
		err := b.reportDamaged(&DamagedError{Seq: l.ObjectID, ObjectID: t.id, Stream: l.Stream, Namespace: l.Namespace, Name: l.Name, Root: l.ObjectID, Err: ErrNoKeyframe})
		if err != nil {
			return err
		}
	}
	return nil
}
