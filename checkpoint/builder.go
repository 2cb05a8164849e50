package checkpoint

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// A builder builds one checkpoint.
type builder struct {
	maker        *Maker
	store        Store
	tx           pgx.Tx
	encoder      *encoder
	end          End
	info         Info
	pending      []Record // of the next block
	pendingBytes int
	first        []Key
	digests      [][]byte // of the blocks with records
	copied       map[int32]bool
	began        time.Time
}

// lives returns objects in the order of blocks: those with these numbers, or all that are live if ids is nil.
func (m *builder) lives(ctx context.Context, ids []int64) ([]*Record, error) {
	lives, err := m.maker.source.Lives(ctx, m.tx, m.end.Seq, ids)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(lives, func(x, y *Record) int { return cmp.Or(x.Key().Compare(y.Key()), cmp.Compare(x.ObjectID, y.ObjectID)) })
	return lives, nil
}

// fold folds objects from their deltas. A damaged object has no text: a rebuild from the checkpoint notices that, and reads
// the deltas itself.
func (m *builder) fold(ctx context.Context, objects ...*Record) error {
	return m.maker.source.Fold(ctx, m.tx, m.end.Seq, objects)
}

func (m *builder) add(ctx context.Context, r *Record) error {
	m.pending = append(m.pending, *r)
	m.pendingBytes += len(r.Doc)
	if len(m.pending) < blockRecords && m.pendingBytes < blockBytes {
		return nil
	}
	return m.flush(ctx)
}

// flush writes a block, and rests.
func (m *builder) flush(ctx context.Context) error {
	if len(m.pending) == 0 {
		return nil
	}
	m.first = append(m.first, m.pending[0].Key())
	data := m.encoder.Block(m.pending)
	digest, err := m.insert(ctx, len(m.first), len(m.pending), data)
	if err != nil {
		return err
	}
	m.digests = append(m.digests, digest)
	m.info.Objects += int64(len(m.pending))
	clear(m.pending)
	m.pending, m.pendingBytes = m.pending[:0], 0
	return m.rest(ctx)
}

func (m *builder) rest(ctx context.Context) error {
	busy := m.maker.options.Busy
	if busy == 1 {
		return nil
	}
	timer := time.NewTimer(time.Duration(float64(time.Since(m.began)) * (1 - busy) / busy))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
	}
	m.began = time.Now()
	return nil
}

func (m *builder) insert(ctx context.Context, number, objects int, data []byte) (digest []byte, err error) {
	sum := sha256.Sum256(data)
	_, err = m.tx.Exec(ctx, `
		INSERT INTO kuberewind.checkpoint_blocks (cluster, checkpoint, block, objects, digest, data) VALUES ($1, $2, $3, $4, $5, $6)`,
		m.maker.cluster, m.info.Seq, number, objects, sum[:], data)
	if err != nil {
		return nil, fmt.Errorf("write block %d: %w", number, err)
	}
	m.info.Bytes += int64(len(data))
	m.info.Blocks++
	return sum[:], nil
}
