package checkpoint

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	"github.com/kuberewind/kuberewind/patch"
)

// beginMaking begins the transaction. After a long tail, the transaction rests for longer than the recorder's pool allows.
// Both statements are one message, so the session is not idle before the limit is off.
const beginMaking = "BEGIN ISOLATION LEVEL REPEATABLE READ; SET LOCAL idle_in_transaction_session_timeout = 0"

func (m *builder) run(ctx context.Context) (Info, error) {
	// An erasure waits for this lock, and this transaction waits for a running erasure before it reads. So an erased value
	// does not come back in a checkpoint. This connection also plans its queries for their actual parameters.
	if _, err := m.tx.Exec(ctx, `SET LOCAL plan_cache_mode = force_custom_plan; SET LOCAL jit = off;
		LOCK TABLE kuberewind.checkpoints IN ROW EXCLUSIVE MODE`); err != nil {
		return m.info, err
	}
	if err := m.start(ctx); err != nil {
		return m.info, err
	}
	from, err := m.store.Newest(ctx, Want{UpTo: m.end.Seq, First: m.end.FirstSeq, Last: m.end.Seq, Unusable: func(info Info, err error) {
		m.maker.options.Log.WarnContext(ctx, "a checkpoint cannot be used; an older one or none is", "checkpoint", info.Seq, "error", err)
	}})
	if err != nil {
		return m.info, err
	}
	m.began = time.Now()
	if from != nil {
		err = m.fromCheckpoint(ctx, from)
	} else {
		err = m.fromDeltas(ctx)
	}
	if err == nil {
		err = m.flush(ctx)
	}
	if err == nil {
		err = m.finish(ctx)
	}
	return m.info, err
}

func (m *builder) start(ctx context.Context) (err error) {
	if m.end, err = m.maker.source.End(ctx, m.tx); err != nil {
		return err
	}
	exists, err := m.store.Has(ctx, m.end.Seq)
	if err != nil {
		return err
	}
	if exists {
		return fmt.Errorf("%w: %d", ErrNothingNew, m.end.Seq)
	}
	m.info = Info{Seq: m.end.Seq, ObservedAt: m.end.ObservedAt, MadeAt: m.maker.options.Now().UTC(), Streams: m.end.Streams}
	return nil
}

// fromDeltas makes a checkpoint without an earlier one: it folds each block from the deltas.
func (m *builder) fromDeltas(ctx context.Context) error {
	lives, err := m.lives(ctx, nil)
	if err != nil {
		return err
	}
	for chunk := range slices.Chunk(lives, blockRecords) {
		if err := m.fold(ctx, chunk...); err != nil {
			return err
		}
		for i, r := range chunk {
			chunk[i] = nil // so that its text is freed after its block
			if err := m.add(ctx, r); err != nil {
				return err
			}
		}
	}
	return nil
}

// finish writes the directory, reads everything back, and publishes the checkpoint.
func (m *builder) finish(ctx context.Context) error {
	directory, err := m.insert(ctx, 0, 0, m.encoder.Directory(m.first))
	if err != nil {
		return err
	}
	all := sha256.New()
	all.Write(directory)
	for _, digest := range m.digests {
		all.Write(digest)
	}
	m.info.Digest = all.Sum(nil)
	if err := m.readBack(ctx); err != nil {
		return fmt.Errorf("read it back: %w", err)
	}
	_, err = m.tx.Exec(ctx, `
		INSERT INTO kuberewind.checkpoints (cluster, checkpoint, observed_at, made_at, objects, blocks, bytes, digest, streams)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
		m.maker.cluster, m.info.Seq, m.info.ObservedAt, m.info.MadeAt, m.info.Objects, m.info.Blocks, m.info.Bytes, m.info.Digest, m.info.Streams)
	return err
}

// readBack compares the database with what the builder wrote: the blocks with their digests, and each object of new blocks
// with its own digest. Copied blocks were compared when they were new.
func (m *builder) readBack(ctx context.Context) error {
	found, err := m.store.Open(ctx, m.info, Scope{})
	if err != nil {
		return err
	}
	decoder := NewDecoder()
	defer decoder.Close()
	for _, number := range found.Blocks {
		if m.copied[number] {
			continue
		}
		data, err := found.Block(ctx, number)
		if err != nil {
			return err
		}
		records, err := decoder.Block(data)
		if err != nil {
			return err
		}
		for i := range records {
			if r := &records[i]; len(r.Doc) > 0 && patch.Digest(r.Doc) != r.Digest {
				return fmt.Errorf("%w: object %d of block %d has another digest", ErrUnusable, r.ObjectID, number)
			}
		}
		if err := m.rest(ctx); err != nil {
			return err
		}
	}
	return nil
}
