package history

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/kuberewind/kuberewind/checkpoint"
	"github.com/kuberewind/kuberewind/patch"
)

// A checkpointSource reads the record for a checkpoint.Maker, within the Maker's transaction.
type checkpointSource struct{ view *view }

// Source returns the part of the record that a checkpoint.Maker reads.
func (r *Record) Source() checkpoint.Source { return checkpointSource{view: r.view} }

func (s checkpointSource) End(ctx context.Context, tx pgx.Tx) (end checkpoint.End, err error) {
	v := s.view.in(tx)
	extent, err := v.extent(ctx)
	if err != nil {
		return end, err
	}
	if extent.FirstSeq == 0 {
		return end, fmt.Errorf("%w of cluster %s", ErrEmpty, v.cluster.Name)
	}
	end.FirstSeq, end.Seq = extent.FirstSeq, extent.LastSeq
	if end.ObservedAt, err = (calendar{view: v}).timeOf(ctx, end.Seq); err != nil {
		return end, err
	}
	set, err := v.readStreams(ctx)
	end.Streams = make(map[int32]string)
	for _, stream := range set.all {
		if stream.LastRV != "" {
			end.Streams[stream.ID] = stream.LastRV
		}
	}
	return end, err
}

func (s checkpointSource) Lives(ctx context.Context, tx pgx.Tx, at int64, ids []int64) (objects []*checkpoint.Record, err error) {
	v := s.view.in(tx)
	give := func(l *Life) {
		objects = append(objects, &checkpoint.Record{ObjectID: l.ObjectID, Stream: l.Stream.ID, Namespace: l.Namespace, Name: l.Name, UID: l.UID})
	}
	if ids == nil {
		for l, err := range v.lives(ctx, LifeQuery{LiveAt: at}, 0) {
			if err != nil {
				return nil, err
			}
			give(&l)
		}
		return objects, nil
	}
	streams, err := v.readStreams(ctx)
	if err != nil {
		return nil, err
	}
	lives, err := v.identities(ctx, streams, ids)
	for _, l := range lives {
		give(l)
	}
	return objects, err
}

func (s checkpointSource) Fold(ctx context.Context, tx pgx.Tx, at int64, objects []*checkpoint.Record) error {
	byID := make(map[int64]*checkpoint.Record, len(objects))
	targets := make([]target, len(objects))
	for i, r := range objects {
		targets[i] = target{id: r.ObjectID, bound: at}
		byID[r.ObjectID] = r
		r.Seq, r.RV, r.Version, r.Doc, r.Digest = r.ObjectID, "", "", nil, [16]byte{}
	}
	if len(targets) == 0 {
		return nil
	}
	slices.SortFunc(targets, func(x, y target) int { return cmp.Compare(x.id, y.id) })
	v := s.view.in(tx)
	days, err := v.daysFrom(ctx, targets[0].id, at)
	if err != nil {
		return err
	}
	find := finder{view: v}
	_, err = find.find(ctx, targets, days, func(last *lastVersion) error {
		if last.err == nil {
			r := byID[last.id]
			r.Seq, r.RV, r.Version, r.Doc, r.Digest = last.seq, last.rv, last.version, last.doc, patch.Digest(last.doc)
		}
		return nil
	})
	return err
}

func (s checkpointSource) Tail(ctx context.Context, tx pgx.Tx, after, upTo int64) (map[int64]checkpoint.Change, error) {
	t, err := readTail(ctx, s.view.in(tx), &Point{Instant: AtSeq(upTo), Seq: upTo}, Scope{}, after, nil)
	if err != nil {
		return nil, err
	}
	changes := make(map[int64]checkpoint.Change, len(t.objects))
	for id, o := range t.objects {
		changes[id] = o
	}
	return changes, nil
}

// Dead reports whether the tail deletes the object.
func (o *tailObject) Dead() bool { return o.dead }

// Apply sets an object of a checkpoint to the last version of the tail.
func (o *tailObject) Apply(r *checkpoint.Record) error {
	doc, err := o.fold(r.Doc)
	if err != nil {
		return err
	}
	last := o.last()
	r.Seq, r.RV, r.Version, r.Doc, r.Digest = last.seq, last.rv, last.version, doc, last.digest
	return nil
}
