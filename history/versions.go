package history

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/klauspost/compress/s2"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/internal/fold"
	"github.com/kuberewind/kuberewind/patch"
)

// A folder keeps the last version, compressed, of each object that this reading has reached and that still lives.
type folder struct {
	view    *view // through the pool
	objects map[int64]*folded
	types   []delta.Type
	missing []time.Time // days that the caller already received as an error
	packed  []byte
}

type folded struct {
	doc  []byte // s2; nil if the object cannot be folded, or has no version yet
	root int64  // seq of the row that is damaged, 0 for none
	err  error
}

// Versions yields what Deltas yields, with the object before and after each delta. If a delta cannot be folded, it comes
// with a *DamagedError and without Doc. So do the later deltas of the object, up to its next keyframe.
func (r *Record) Versions(ctx context.Context, q Query) iter.Seq2[Version, error] {
	return r.view.versions(ctx, q)
}

func (v *view) versions(ctx context.Context, q Query) iter.Seq2[Version, error] {
	return func(yield func(Version, error) bool) {
		f := newFolder(v, &q)
		g, err := newDeltaReader(ctx, v, q)
		if err != nil {
			yield(Version{}, err)
			return
		}
		f.versions(ctx, g, yield)
	}
}

// FollowVersions yields what Versions yields, and then waits for more. It ends with ctx, without an error, or with the
// Query.
func (r *Record) FollowVersions(ctx context.Context, q Query) iter.Seq2[Version, error] {
	return func(yield func(Version, error) bool) {
		yield = unlessDone(ctx, yield)
		f := newFolder(r.view, &q)
		err := follow(ctx, r.view, q, func(g *deltaReader) bool { return f.versions(ctx, g, yield) })
		if err != nil {
			yield(Version{}, err)
		}
	}
}

// newFolder moves the types out of the Query: folding a version needs deltas of all types.
func newFolder(v *view, q *Query) *folder {
	f := &folder{view: v, objects: make(map[int64]*folded), types: q.Types}
	q.Types = nil
	return f
}

func (f *folder) versions(ctx context.Context, g *deltaReader, yield func(Version, error) bool) bool {
	if _, err := typeNumbers(f.types); err != nil {
		yield(Version{}, err)
		return false
	}
	for batch, err := range g.batches(ctx) {
		if err == nil {
			err = f.load(ctx, batch)
		}
		if err != nil && !f.reported(err) && !yield(Version{}, err) {
			return false
		}
		if err != nil && !isMissingDay(err) {
			return false
		}
		for i := range batch {
			if !f.give(ctx, &batch[i], yield) {
				return false
			}
		}
	}
	return true
}

// load finds the previous versions of objects that this reading reaches for the first time.
func (f *folder) load(ctx context.Context, batch []Row) error {
	var targets []target
	for i := range batch {
		w := &batch[i]
		if f.objects[w.ObjectID] != nil {
			continue
		}
		f.objects[w.ObjectID] = new(folded)
		if w.Seq != w.ObjectID {
			targets = append(targets, target{id: w.ObjectID, bound: w.Seq - 1, from: math.MaxInt64})
		}
	}
	if len(targets) == 0 {
		return nil
	}
	slices.SortFunc(targets, func(a, b target) int { return cmp.Compare(a.id, b.id) })
	last := slices.MaxFunc(targets, func(a, b target) int { return cmp.Compare(a.bound, b.bound) }).bound
	days, err := f.view.daysFrom(ctx, targets[0].id, last)
	if err != nil {
		return err
	}
	find := finder{view: f.view}
	_, err = find.find(ctx, targets, days, func(v *lastVersion) error {
		o := f.objects[v.id]
		if v.err != nil {
			o.root, o.err = v.seq, v.err
			return nil //nolint:nilerr // its deltas are yielded, each with the error
		}
		f.keep(o, v.doc)
		return nil
	})
	return err
}

func (f *folder) keep(o *folded, doc patch.Doc) {
	f.packed = s2.Encode(f.packed[:cap(f.packed)], doc)
	o.doc, o.root, o.err = slices.Clone(f.packed), 0, nil
}

// give yields the version of one row.
func (f *folder) give(ctx context.Context, w *Row, yield func(Version, error) bool) bool {
	stream, err := f.view.stream(ctx, w.Stream)
	if err != nil {
		yield(Version{}, err)
		return false
	}
	v, err := f.version(w, stream)
	if f.types != nil && !slices.Contains(f.types, v.Type) {
		return true
	}
	return yield(v, err)
}

func (f *folder) version(w *Row, stream *Stream) (v Version, err error) {
	o := f.objects[w.ObjectID]
	if w.Type == delta.NumberDeleted {
		delete(f.objects, w.ObjectID)
	}
	v.Delta, err = w.delta(stream)
	if o.doc != nil {
		before, unpackErr := s2.Decode(nil, o.doc)
		if unpackErr != nil {
			return v, unpackErr // corruption of our own memory
		}
		v.Before = before
	}
	if err == nil {
		v.Doc, err = fold.Row{RV: w.RV, Patch: v.Patch, Object: v.Object}.Checked(v.Before, w.Digest)
	}
	if err == nil {
		f.keep(o, v.Doc)
		return v, nil
	}
	damaged := w.damaged(stream, w.Seq, err)
	if o.root != 0 && !w.Whole() {
		damaged.Root, damaged.Err = o.root, o.err
	}
	o.doc, o.root, o.err = nil, damaged.Root, err
	return v, damaged
}

// reported reports whether the caller already received this missing day. The day may hold earlier versions of objects of
// several batches.
func (f *folder) reported(err error) bool {
	var missing *MissingDayError
	if !errors.As(err, &missing) {
		return false
	}
	if slices.Contains(f.missing, missing.Day) {
		return true
	}
	f.missing = append(f.missing, missing.Day)
	return false
}
