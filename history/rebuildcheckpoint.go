package history

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/kuberewind/kuberewind/internal/checkpoint"
	"github.com/kuberewind/kuberewind/patch"
)

// tailPerObject, beside leastDeltas, bounds the tail that is read to use a checkpoint. Folding an object from its deltas alone
// costs as much as reading five to nine rows of a tail. (See go test ./history -run '^$' -bench Rebuild; the records of ./bench
// are at five.)
const tailPerObject = 5

// newest finds the checkpoint to start from, or nil.
func (b *rebuilding) newest(ctx context.Context, tx pgx.Tx) (*saved, error) {
	upTo := b.point.sure(b.scope)
	extent, err := b.record.extent(ctx, tx)
	if err != nil {
		return nil, err
	}
	for {
		infos, err := b.record.checkpoints(ctx, tx, upTo, 1)
		if err != nil {
			return nil, err
		}
		if len(infos) == 0 {
			return nil, nil
		}
		info := infos[0]
		if info.Seq < extent.FirstSeq-1 {
			return nil, nil // The deltas after it were dropped in part, and an older one is no better.
		}
		if max(b.point.Seq, b.point.Until)-info.Seq > tailPerObject*info.Objects+leastDeltas {
			return nil, nil
		}
		upTo = info.Seq - 1
		found, err := b.record.usable(ctx, tx, info, b.scope)
		if err == nil {
			return found, nil
		}
		if !errors.Is(err, errUnusable) {
			return nil, err
		}
		text := fmt.Sprintf("checkpoint %d cannot be used: %v; the answer is the same without it", info.Seq, err)
		b.record.log.WarnContext(ctx, "a checkpoint cannot be used; an older one or none is", "cluster", b.record.cluster.Name, "checkpoint", info.Seq, "error", err)
		b.stats.Notes = append(b.stats.Notes, Note{Kind: NoteCheckpoint, Text: text})
	}
}

func (b *rebuilding) fromCheckpoint(ctx context.Context, tx pgx.Tx, from *saved) error {
	b.stats.Checkpoint = from.info.Seq
	t, err := b.record.readTail(ctx, tx, &b.point, b.scope, from.info.Seq, func(n int64) { b.tell("deltas", n, 0) })
	if err != nil {
		return err
	}
	b.stats.Tail = t.rows
	if err := b.inherit(ctx, tx, t); err != nil {
		return err
	}
	if err := b.decode(ctx, tx, from, t); err != nil {
		return err
	}
	if err := b.foldNew(ctx, tx, t); err != nil {
		return err
	}
	if len(b.doubt) == 0 {
		return nil
	}
	ids := make([]int64, len(b.doubt))
	for i, d := range b.doubt {
		ids[i] = d.id
	}
	lives, err := b.identities(ctx, tx, ids)
	if err != nil {
		return err
	}
	return b.findAll(ctx, tx, 1, &search{lives: lives, targets: b.doubt})
}

// decode gives the objects of the checkpoint that the tail leaves alone, and folds the others. One goroutine reads blocks, others decode them; no
// more wait than there are decoders.
func (b *rebuilding) decode(ctx context.Context, tx pgx.Tx, from *saved, t *tail) error {
	decoder := checkpoint.NewDecoder()
	defer decoder.Close()
	work, workCtx := errgroup.WithContext(ctx)
	blocks := make(chan []byte)
	work.Go(func() error {
		defer close(blocks)
		return b.record.eachBlock(workCtx, tx, from, func(data []byte) error {
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
					return fmt.Errorf("checkpoint %d: %w", from.info.Seq, err)
				}
				for i := range records {
					if err := b.saved(&records[i], t, from.info.Seq); err != nil {
						return err
					}
				}
				b.tell("objects", b.objects.Load(), from.info.Objects)
			}
			return nil
		})
	}
	return work.Wait()
}

// saved gives one object of a checkpoint without comparing it once more. Its text was compared with the digest of its last row
// when the checkpoint was made. Its block was compared with the block's digest before use. An object that was damaged when the
// checkpoint was made has no text in it, and its last row is not known.
func (b *rebuilding) saved(s *checkpoint.Record, t *tail, made int64) error {
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
	case b.heirs[s.Key()] > s.ObjectID:
		if changed != nil {
			changed.seen = true
		}
		return nil
	case changed == nil || !changed.touched():
		if len(s.Doc) == 0 {
			b.doubted(s.ObjectID, made)
			return nil
		}
		return b.give(&object)
	case changed.dead:
		changed.seen = true
		return nil
	}
	changed.seen = true
	return b.folded(&object, changed, s.Doc)
}

// folded gives an object that the tail changed.
func (b *rebuilding) folded(object *Object, changed *tailObject, before patch.Doc) error {
	last := changed.last()
	doc, err := changed.fold(before)
	if err != nil {
		b.doubted(object.ObjectID, last.seq)
		return nil //nolint:nilerr // it is folded again, step by step, and told then
	}
	object.Doc, object.Seq, object.ObservedAt, object.OccurredAt = doc, last.seq, last.observed.UTC(), last.occurred.UTC()
	object.RV, object.Version = last.rv, last.version
	return b.give(object)
}

// foldNew gives the objects that began in the tail.
func (b *rebuilding) foldNew(ctx context.Context, tx pgx.Tx, t *tail) error {
	var ids []int64
	for id, o := range t.objects {
		if o.touched() && !o.dead && !o.seen {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	lives, err := b.identities(ctx, tx, ids)
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
				if b.outlived(life) {
					continue
				}
				if life == nil {
					life = &Life{ObjectID: id, Stream: b.streams.byID[changed.last().stream]}
				}
				object := life.object()
				if err := b.folded(&object, changed, nil); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return work.Wait()
}

// identities finds lives by their numbers, without their ends.
func (b *rebuilding) identities(ctx context.Context, tx pgx.Tx, ids []int64) (map[int64]*Life, error) {
	lives := make(map[int64]*Life, len(ids))
	if len(ids) == 0 {
		return lives, nil
	}
	rows, err := tx.Query(ctx, `
		SELECT object_id, stream, namespace, name, uid, 0
		FROM kuberewind.record_lives WHERE cluster = $1 AND object_id = ANY ($2::bigint[])`, b.record.cluster.Number, ids)
	if err != nil {
		return nil, fmt.Errorf("read the lives of the record: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		l := new(Life)
		var stream int32
		if err := scanLife(rows, l, &stream); err != nil {
			return nil, err
		}
		l.Stream = b.streams.byID[stream]
		lives[l.ObjectID] = l
	}
	return lives, rows.Err()
}
