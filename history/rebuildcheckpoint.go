package history

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/kuberewind/kuberewind/checkpoint"
	"github.com/kuberewind/kuberewind/patch"
)

// newest returns the checkpoint to start from, or nil.
func (b *rebuilding) newest(ctx context.Context, v *view) (*checkpoint.Saved, error) {
	extent, err := v.extent(ctx)
	if err != nil {
		return nil, err
	}
	return v.checkpoints().Newest(ctx, checkpoint.Want{
		UpTo: b.point.sure(b.scope), First: extent.FirstSeq, Last: max(b.point.Seq, b.point.Until),
		Scope: checkpoint.Scope{Streams: b.scope.Streams, Namespace: b.scope.Namespace},
		Unusable: func(info checkpoint.Info, err error) {
			text := fmt.Sprintf("checkpoint %d cannot be used: %v; the answer is the same without it", info.Seq, err)
			b.log.WarnContext(ctx, "a checkpoint cannot be used; an older one or none is", "cluster", v.cluster.Name, "checkpoint", info.Seq, "error", err)
			b.stats.Notes = append(b.stats.Notes, Note{Kind: NoteCheckpoint, Text: text})
		},
	})
}

func (b *rebuilding) fromCheckpoint(ctx context.Context, v *view, from *checkpoint.Saved) error {
	b.stats.Checkpoint = from.Info.Seq
	t, err := readTail(ctx, v, &b.point, b.scope, from.Info.Seq, func(n int64) { b.report("deltas", n, 0) })
	if err != nil {
		return err
	}
	b.stats.Tail = t.rows
	if err := b.findSuccessors(ctx, v, t); err != nil {
		return err
	}
	if err := b.decode(ctx, from, t); err != nil {
		return err
	}
	if err := b.foldNew(ctx, v, t); err != nil {
		return err
	}
	if len(b.refold) == 0 {
		return nil
	}
	ids := make([]int64, len(b.refold))
	for i, d := range b.refold {
		ids[i] = d.id
	}
	lives, err := v.identities(ctx, b.streams, ids)
	if err != nil {
		return err
	}
	return b.findAll(ctx, v, 1, &search{lives: lives, targets: b.refold})
}

// decode emits the objects of the checkpoint that the tail does not touch, and folds the others. One goroutine reads
// blocks, and several decode them. At most one block waits for each decoder.
func (b *rebuilding) decode(ctx context.Context, from *checkpoint.Saved, t *tail) error {
	decoder := checkpoint.NewDecoder()
	defer decoder.Close()
	work, workCtx := errgroup.WithContext(ctx)
	blocks := make(chan []byte)
	work.Go(func() error {
		defer close(blocks)
		return from.Each(workCtx, func(data []byte) error {
			select {
			case blocks <- data:
				return nil
			case <-workCtx.Done():
				return workCtx.Err()
			}
		})
	})
	for range b.workers {
		work.Go(func() error {
			for data := range blocks {
				records, err := decoder.Block(data)
				if err != nil {
					return fmt.Errorf("checkpoint %d: %w", from.Info.Seq, err)
				}
				for i := range records {
					if err := b.emitSaved(&records[i], t, from.Info.Seq); err != nil {
						return err
					}
				}
				b.report("objects", b.objects.Load(), from.Info.Objects)
			}
			return nil
		})
	}
	return work.Wait()
}

// emitSaved emits one object of a checkpoint without comparing its digest again. The maker compared the text with the
// digest of its last row. The reader compared the block with the block's digest before use. An object that was damaged when
// the checkpoint was made has no text in it, and its last row is not known.
func (b *rebuilding) emitSaved(s *checkpoint.Record, t *tail, made int64) error {
	if !b.inScope(s.Stream, s.Namespace, s.Name) {
		return nil
	}
	if at, ok := b.point.streams[s.Stream]; b.point.RV != "" && (!ok || at.seq == 0) {
		return nil
	}
	changed := t.objects[s.ObjectID]
	object := Object{
		ObjectID: s.ObjectID, Seq: s.Seq, Stream: b.streams.byID[s.Stream], Namespace: s.Namespace, Name: s.Name, UID: s.UID,
		RV: s.RV, Version: s.Version, Doc: s.Doc,
	}
	switch {
	case b.successors[s.Key()] > s.ObjectID:
		if changed != nil {
			changed.seen = true
		}
		return nil
	case changed == nil || !changed.touched():
		if len(s.Doc) == 0 {
			b.foldLater(s.ObjectID, made)
			return nil
		}
		return b.give(&object)
	case changed.dead:
		changed.seen = true
		return nil
	}
	changed.seen = true
	return b.emitFolded(&object, changed, s.Doc)
}

// emitFolded folds and emits an object that the tail changed.
func (b *rebuilding) emitFolded(object *Object, changed *tailObject, before patch.Doc) error {
	last := changed.last()
	doc, err := changed.fold(before)
	if err != nil {
		b.foldLater(object.ObjectID, last.seq)
		return nil //nolint:nilerr // it is folded again later, step by step, and reported then
	}
	object.Doc, object.Seq, object.ObservedAt, object.OccurredAt = doc, last.seq, last.observed.UTC(), last.occurred.UTC()
	object.RV, object.Version = last.rv, last.version
	return b.give(object)
}

// foldNew emits the objects that began in the tail.
func (b *rebuilding) foldNew(ctx context.Context, v *view, t *tail) error {
	var ids []int64
	for id, o := range t.objects {
		if o.touched() && !o.dead && !o.seen {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	lives, err := v.identities(ctx, b.streams, ids)
	if err != nil {
		return err
	}
	work, _ := errgroup.WithContext(ctx)
	work.SetLimit(b.workers)
	for chunk := range slices.Chunk(ids, lastChunk) {
		work.Go(func() error {
			for _, id := range chunk {
				changed := t.objects[id]
				life := lives[id]
				if b.replaced(life) {
					continue
				}
				if life == nil {
					life = &Life{ObjectID: id, Stream: b.streams.byID[changed.last().stream]}
				}
				object := life.object()
				if err := b.emitFolded(&object, changed, nil); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return work.Wait()
}
