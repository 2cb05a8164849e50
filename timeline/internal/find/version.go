package find

import (
	"context"
	"slices"

	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/patch"
)

// A Version is the version of an object at an instant.
type Version struct {
	Life    history.Life
	Point   history.Point
	Seq     int64                 // of the version, 0 if the object does not exist then
	Doc     patch.Doc             // nil if the object does not exist then, or is damaged
	Damaged *history.DamagedError // why the version cannot be read
}

// At finds an object at an instant: the life that Life finds, and its version. Within a pause, the name may already belong
// to a later life. At then returns the later life, unless the name is a UID.
func At(ctx context.Context, rec *history.Record, n Name, at history.Instant) (v Version, err error) {
	point, err := rec.Resolve(ctx, at, history.Scope{})
	if err != nil {
		return v, err
	}
	if v.Life, err = Life(ctx, rec, n, point.Seq); err != nil {
		return v, err
	}
	scope := history.Scope{Streams: []int32{v.Life.Stream.ID}, Namespace: v.Life.Namespace, Name: v.Life.Name}
	if v.Point, err = rec.Resolve(ctx, at, scope); err != nil { // The notes must be about this resource only.
		return v, err
	}
	return v, v.rebuild(ctx, rec, n, scope)
}

// rebuild finds the version. A name selects at most one life.
func (v *Version) rebuild(ctx context.Context, rec *history.Record, n Name, scope history.Scope) error {
	id := v.Life.ObjectID
	is := func(found, seq int64) bool {
		if found != v.Life.ObjectID && n.UID != "" {
			return false
		}
		id, v.Seq = found, seq
		return true
	}
	onDamaged := func(d *history.DamagedError) {
		if is(d.ObjectID, d.Seq) {
			v.Damaged = d
		}
	}
	_, err := rec.Rebuild(ctx, v.Point, scope, history.RebuildOptions{Damaged: onDamaged}, func(o history.Object) error {
		if is(o.ObjectID, o.Seq) {
			v.Doc = slices.Clone(o.Doc)
		}
		return nil
	})
	if err != nil || id == v.Life.ObjectID {
		return err
	}
	for life, err := range rec.Lives(ctx, history.LifeQuery{ObjectIDs: []int64{id}}) {
		if err != nil {
			return err
		}
		v.Life = life
	}
	return nil
}
