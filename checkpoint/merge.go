package checkpoint

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"
)

// fromCheckpoint merges an earlier checkpoint with the deltas after it. Both are in the order of blocks. If no object in a
// block changed, it copies the block.
func (m *builder) fromCheckpoint(ctx context.Context, from *Saved) error {
	tail, err := m.maker.source.Tail(ctx, m.tx, from.Info.Seq, m.end.Seq)
	if err != nil {
		return err
	}
	changed, err := m.lives(ctx, slices.AppendSeq(make([]int64, 0, len(tail)), maps.Keys(tail)))
	if err != nil {
		return err
	}
	known := len(changed) == len(tail) // otherwise a life is missing, and its block is unknown
	born := slices.DeleteFunc(slices.Clone(changed), func(r *Record) bool { return r.ObjectID <= from.Info.Seq || tail[r.ObjectID].Dead() })
	large, err := m.largeBlocks(ctx, from)
	if err != nil {
		return err
	}
	decoder := NewDecoder()
	defer decoder.Close()
	for i, number := range from.Blocks {
		for ; len(born) > 0 && born[0].Key().Compare(from.First[i]) < 0; born = born[1:] {
			if err := m.addBorn(ctx, born[0], tail); err != nil {
				return err
			}
		}
		if known && large[number] && !anyWithin(changed, from.First, i) {
			err = m.copyBlock(ctx, from, number)
		} else {
			born, err = m.mergeBlock(ctx, decoder, from, number, tail, born)
		}
		if err != nil {
			return err
		}
	}
	for _, r := range born {
		if err := m.addBorn(ctx, r, tail); err != nil {
			return err
		}
	}
	return nil
}

// anyWithin reports whether one of these lives, which are sorted, can be in the block with this index.
func anyWithin(lives []*Record, first []Key, i int) bool {
	n, _ := slices.BinarySearchFunc(lives, first[i], func(r *Record, k Key) int { return r.Key().Compare(k) })
	return n < len(lives) && (i+1 == len(first) || lives[n].Key().Compare(first[i+1]) <= 0)
}

// copiedBytes is the size from which a block is copied even if it has few objects.
const copiedBytes = blockBytes / 64

// largeBlocks finds the blocks that are large enough to copy. Small blocks are merged with the records before them;
// otherwise checkpoints would consist of ever smaller blocks.
func (m *builder) largeBlocks(ctx context.Context, from *Saved) (map[int32]bool, error) {
	rows, err := m.tx.Query(ctx, `
		SELECT block FROM kuberewind.record_checkpoint_blocks
		WHERE cluster = $1 AND checkpoint = $2 AND (objects >= $3 OR octet_length(data) >= $4)`,
		m.maker.cluster, from.Info.Seq, blockRecords/2, copiedBytes)
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

// copyBlock copies a block. This transaction has compared the block's data with its digest.
func (m *builder) copyBlock(ctx context.Context, from *Saved, number int32) error {
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
		m.maker.cluster, from.Info.Seq, m.info.Seq, len(m.first), number).Scan(&objects, &size, &digest)
	if err != nil {
		return fmt.Errorf("copy block %d of checkpoint %d: %w", number, from.Info.Seq, err)
	}
	m.copied[int32(len(m.first))] = true
	m.digests = append(m.digests, digest)
	m.info.Objects, m.info.Bytes, m.info.Blocks = m.info.Objects+objects, m.info.Bytes+size, m.info.Blocks+1
	return m.rest(ctx)
}

// mergeBlock adds the objects of a block, and the new objects between them. It returns the new objects after the block.
func (m *builder) mergeBlock(ctx context.Context, decoder *Decoder, from *Saved, number int32, tail map[int64]Change, born []*Record) ([]*Record, error) {
	data, err := from.Block(ctx, number)
	if err != nil {
		return nil, err
	}
	records, err := decoder.Block(data)
	if err != nil {
		return nil, err
	}
	for i := range records {
		for ; len(born) > 0 && born[0].Key().Compare(records[i].Key()) < 0; born = born[1:] {
			if err := m.addBorn(ctx, born[0], tail); err != nil {
				return nil, err
			}
		}
		if err := m.addSaved(ctx, &records[i], tail[records[i].ObjectID]); err != nil {
			return nil, err
		}
	}
	return born, nil
}

// addSaved adds an object of the earlier checkpoint. A nil change says that no delta touches it.
func (m *builder) addSaved(ctx context.Context, r *Record, changed Change) error {
	switch {
	case changed == nil && len(r.Doc) == 0:
		return m.addFolded(ctx, r)
	case changed == nil:
		return m.add(ctx, r)
	case changed.Dead():
		return nil
	}
	return m.addChanged(ctx, r, changed)
}

// addBorn adds an object that is younger than the earlier checkpoint. It copies the record, so that the text is freed after
// its block: the caller keeps the record until the last block.
func (m *builder) addBorn(ctx context.Context, r *Record, tail map[int64]Change) error {
	object := *r
	return m.addChanged(ctx, &object, tail[r.ObjectID])
}

func (m *builder) addChanged(ctx context.Context, r *Record, changed Change) error {
	if err := changed.Apply(r); err != nil {
		return m.addFolded(ctx, r) // step by step, from the deltas alone
	}
	return m.add(ctx, r)
}

func (m *builder) addFolded(ctx context.Context, r *Record) error {
	if err := m.fold(ctx, r); err != nil {
		return err
	}
	return m.add(ctx, r)
}
