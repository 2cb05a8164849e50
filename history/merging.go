package history

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/kuberewind/kuberewind/checkpoint"
)

// fromCheckpoint merges a checkpoint with what the deltas after it say. Both are in the order of blocks. A block in which nothing changed is
// copied as it is.
func (m *making) fromCheckpoint(ctx context.Context, b *rebuilding, from *checkpoint.Saved) error {
	t, err := m.record.readTail(ctx, m.tx, &m.point, Scope{}, from.Info.Seq, nil)
	if err != nil {
		return err
	}
	changed, err := m.lives(ctx, b, slices.AppendSeq(make([]int64, 0, len(t.objects)), maps.Keys(t.objects)))
	if err != nil {
		return err
	}
	known := len(changed) == len(t.objects) // or a life is missing, and with it what block it is in
	born := slices.DeleteFunc(slices.Clone(changed), func(l *Life) bool { return l.ObjectID <= from.Info.Seq || t.objects[l.ObjectID].dead })
	large, err := m.largeBlocks(ctx, from)
	if err != nil {
		return err
	}
	decoder := checkpoint.NewDecoder()
	defer decoder.Close()
	for i, number := range from.Blocks {
		for ; len(born) > 0 && keyOf(born[0]).Compare(from.First[i]) < 0; born = born[1:] {
			if err := m.addLife(ctx, born[0], t); err != nil {
				return err
			}
		}
		if known && large[number] && !anyWithin(changed, from.First, i) {
			err = m.copyBlock(ctx, from, number)
		} else {
			born, err = m.mergeBlock(ctx, decoder, from, number, t, born)
		}
		if err != nil {
			return err
		}
	}
	for _, l := range born {
		if err := m.addLife(ctx, l, t); err != nil {
			return err
		}
	}
	return nil
}

// anyWithin reports whether one of lives, sorted, can be in the block with an index.
func anyWithin(lives []*Life, first []checkpoint.Key, i int) bool {
	n, _ := slices.BinarySearchFunc(lives, first[i], func(l *Life, k checkpoint.Key) int { return keyOf(l).Compare(k) })
	return n < len(lives) && (i+1 == len(first) || keyOf(lives[n]).Compare(first[i+1]) <= 0)
}

// copiedBytes is from how many bytes on a block is worth being copied though it has few objects.
const copiedBytes = checkpoint.BlockBytes / 64

// largeBlocks finds the blocks that are worth copying. Small ones are joined with the records before, or checkpoints would fall
// to pieces.
func (m *making) largeBlocks(ctx context.Context, from *checkpoint.Saved) (map[int32]bool, error) {
	rows, err := m.tx.Query(ctx, `
		SELECT block FROM kuberewind.record_checkpoint_blocks
		WHERE cluster = $1 AND checkpoint = $2 AND (objects >= $3 OR octet_length(data) >= $4)`,
		m.record.cluster.Number, from.Info.Seq, checkpoint.BlockRecords/2, copiedBytes)
	if err != nil {
		return nil, fmt.Errorf("read checkpoint %d: %w", from.Info.Seq, err)
	}
	large := make(map[int32]bool)
	var block int32
	_, err = pgx.ForEachRow(rows, []any{&block}, func() error {
		large[block] = true
		return nil
	})
	return large, err
}

// copyBlock copies a block, whose digest was compared with its data in this transaction.
func (m *making) copyBlock(ctx context.Context, from *checkpoint.Saved, number int32) error {
	if err := m.flush(ctx); err != nil {
		return err
	}
	var objects, size int64
	var digest []byte
	m.first = append(m.first, from.First[number-1])
	err := m.tx.QueryRow(ctx, `
		INSERT INTO kuberewind.checkpoint_blocks (cluster, checkpoint, block, objects, digest, data)
		SELECT cluster, $3, $4, objects, digest, data
		FROM kuberewind.record_checkpoint_blocks WHERE cluster = $1 AND checkpoint = $2 AND block = $5
		RETURNING objects, octet_length(data), digest`,
		m.record.cluster.Number, from.Info.Seq, m.info.Seq, len(m.first), number).Scan(&objects, &size, &digest)
	if err != nil {
		return fmt.Errorf("copy block %d of checkpoint %d: %w", number, from.Info.Seq, err)
	}
	m.copied[int32(len(m.first))] = true
	m.digests = append(m.digests, digest)
	m.info.Objects, m.info.Bytes, m.info.Blocks = m.info.Objects+objects, m.info.Bytes+size, m.info.Blocks+1
	return m.rest(ctx)
}

// mergeBlock adds the objects of a block, and those born between; it returns those born later.
func (m *making) mergeBlock(ctx context.Context, decoder *checkpoint.Decoder, from *checkpoint.Saved, number int32, t *tail, born []*Life) ([]*Life, error) {
	data, err := from.Block(ctx, number)
	if err != nil {
		return nil, err
	}
	records, err := decoder.Block(data)
	if err != nil {
		return nil, err
	}
	for i := range records {
		for ; len(born) > 0 && keyOf(born[0]).Compare(records[i].Key()) < 0; born = born[1:] {
			if err := m.addLife(ctx, born[0], t); err != nil {
				return nil, err
			}
		}
		if err := m.addSaved(ctx, &records[i], t); err != nil {
			return nil, err
		}
	}
	return born, nil
}

func (m *making) addLife(ctx context.Context, l *Life, t *tail) error {
	r := &checkpoint.Record{ObjectID: l.ObjectID, Stream: l.Stream.ID, Namespace: l.Namespace, Name: l.Name, UID: l.UID}
	return m.addFolded(ctx, r, l, t.objects[l.ObjectID])
}

func (m *making) addSaved(ctx context.Context, r *checkpoint.Record, t *tail) error {
	changed := t.objects[r.ObjectID]
	life := &Life{ObjectID: r.ObjectID, Stream: &Stream{ID: r.Stream}, Namespace: r.Namespace, Name: r.Name, UID: r.UID}
	switch {
	case changed == nil && len(r.Doc) == 0:
		return m.addFound(ctx, life)
	case changed == nil:
		return m.add(ctx, r)
	case changed.dead:
		return nil
	}
	return m.addFolded(ctx, r, life, changed)
}

func (m *making) addFolded(ctx context.Context, r *checkpoint.Record, l *Life, changed *tailObject) error {
	doc, err := changed.fold(r.Doc)
	if err != nil {
		return m.addFound(ctx, l)
	}
	last := changed.last()
	r.Seq, r.RV, r.Version, r.Doc, r.Digest = last.seq, last.rv, last.version, doc, last.digest
	return m.add(ctx, r)
}

func (m *making) addFound(ctx context.Context, l *Life) error {
	records, err := m.find(ctx, []*Life{l})
	if err != nil {
		return err
	}
	return m.add(ctx, records[l.ObjectID])
}
