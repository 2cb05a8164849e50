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
type checkpointSource struct{ record *Record }

// Source gives what a checkpoint.Maker reads of the record.
func (r *Record) Source() checkpoint.Source { return checkpointSource{record: r} }

func (s checkpointSource) End(ctx context.Context, tx pgx.Tx) (end checkpoint.End, err error) {
	extent, err := s.record.extent(ctx, tx)
	if err != nil {
		return end, err
	}
	if extent.FirstSeq == 0 {
		return end, fmt.Errorf("%w of cluster %s", ErrEmpty, s.record.cluster.Name)
	}
	end.FirstSeq, end.Seq = extent.FirstSeq, extent.LastSeq
	f := &pointer{record: s.record, tx: tx, extent: extent}
	if end.ObservedAt, err = f.timeOf(ctx, end.Seq); err != nil {
		return end, err
	}
	set, err := s.record.readStreams(ctx, tx)
	end.Streams = make(map[int32]string)
	for _, stream := range set.all {
		if stream.LastRV != "" {
			end.Streams[stream.ID] = stream.LastRV
		}
	}
	return end, err
}

func (s checkpointSource) Lives(ctx context.Context, tx pgx.Tx, at int64, ids []int64) (objects []*checkpoint.Record, err error) {
	give := func(l *Life) {
		objects = append(objects, &checkpoint.Record{ObjectID: l.ObjectID, Stream: l.Stream.ID, Namespace: l.Namespace, Name: l.Name, UID: l.UID})
	}
	if ids == nil {
		for l, err := range s.record.lives(ctx, tx, LifeQuery{LiveAt: at}, 0) {
			if err != nil {
				return nil, err
			}
			give(&l)
		}
		return objects, nil
	}
	streams, err := s.record.readStreams(ctx, tx)
	if err != nil {
		return nil, err
	}
	lives, err := s.record.identities(ctx, tx, streams, ids)
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
	days, err := s.record.daysFrom(ctx, tx, targets[0].id, at)
	if err != nil {
		return err
	}
	find := finder{record: s.record}
	_, err = find.find(ctx, tx, targets, days, func(v *lastVersion) error {
		if v.err == nil {
			r := byID[v.id]
			r.Seq, r.RV, r.Version, r.Doc, r.Digest = v.seq, v.rv, v.version, v.doc, patch.Digest(v.doc)
		}
		return nil
	})
	return err
}

func (s checkpointSource) Tail(ctx context.Context, tx pgx.Tx, after, upTo int64) (map[int64]checkpoint.Change, error) {
	t, err := s.record.readTail(ctx, tx, &Point{Instant: AtSeq(upTo), Seq: upTo}, Scope{}, after, nil)
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

// Apply gives an object of a checkpoint the last version of the tail.
func (o *tailObject) Apply(r *checkpoint.Record) error {
	doc, err := o.fold(r.Doc)
	if err != nil {
		return err
	}
	last := o.last()
	r.Seq, r.RV, r.Version, r.Doc, r.Digest = last.seq, last.rv, last.version, doc, last.digest
	return nil
}
