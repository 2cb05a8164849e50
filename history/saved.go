package history

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kuberewind/kuberewind/internal/checkpoint"
)

// A CheckpointInfo describes a checkpoint.
type CheckpointInfo struct {
	Seq        int64
	ObservedAt time.Time // of that seq
	MadeAt     time.Time
	Objects    int64
	Blocks     int64
	Bytes      int64
	Digest     []byte
	Streams    map[int32]string // newest resource version of each stream
}

// Checkpoints lists the checkpoints of the record, newest first.
func (r *Record) Checkpoints(ctx context.Context) ([]CheckpointInfo, error) {
	return r.checkpoints(ctx, r.pool, wholeSeq, wholeSeq)
}

// checkpoints lists those up to a seq, newest first: so many at most.
func (r *Record) checkpoints(ctx context.Context, db querier, upTo, limit int64) ([]CheckpointInfo, error) {
	rows, err := db.Query(ctx, `
		SELECT checkpoint, observed_at, made_at, objects, blocks, bytes, digest, streams
		FROM kuberewind.record_checkpoints WHERE cluster = $1 AND checkpoint <= $2 ORDER BY checkpoint DESC LIMIT $3`,
		r.cluster.Number, upTo, limit)
	if err != nil {
		return nil, fmt.Errorf("read the checkpoints of the record: %w", err)
	}
	infos, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (c CheckpointInfo, err error) {
		err = row.Scan(&c.Seq, &c.ObservedAt, &c.MadeAt, &c.Objects, &c.Blocks, &c.Bytes, &c.Digest, &c.Streams)
		c.ObservedAt, c.MadeAt = c.ObservedAt.UTC(), c.MadeAt.UTC()
		return c, err
	})
	if err != nil {
		return nil, fmt.Errorf("read the checkpoints of the record: %w", err)
	}
	return infos, nil
}

// hasCheckpoint reports whether there is a checkpoint of a seq.
func (r *Record) hasCheckpoint(ctx context.Context, db querier, seq int64) (there bool, err error) {
	err = db.QueryRow(ctx, `SELECT EXISTS (SELECT FROM kuberewind.record_checkpoints WHERE cluster = $1 AND checkpoint = $2)`, r.cluster.Number, seq).Scan(&there)
	if err != nil {
		return false, fmt.Errorf("look for checkpoint %d: %w", seq, err)
	}
	return there, nil
}

// errUnusable says that a checkpoint is not what was written. Its content was derived, so nothing is lost.
var errUnusable = errors.New("it is not what was written")

// A saved is a checkpoint whose blocks were compared with their digests.
type saved struct {
	info   CheckpointInfo
	first  []checkpoint.Key // of each block with records
	blocks []int32          // those that the scope needs
}

// usable compares the blocks that a scope needs with their digests, on the server, and the rest by their number and digest on record.
func (r *Record) usable(ctx context.Context, db querier, info CheckpointInfo, scope Scope) (*saved, error) {
	s := &saved{info: info}
	if err := r.complete(ctx, db, &info); err != nil {
		return nil, err
	}
	data, err := r.block(ctx, db, info.Seq, 0)
	if err != nil {
		return nil, err
	}
	decoder := checkpoint.NewDecoder()
	defer decoder.Close()
	if s.first, err = decoder.Directory(data); err != nil {
		return nil, fmt.Errorf("%w: its directory: %w", errUnusable, err)
	}
	if int64(len(s.first)) != info.Blocks-1 {
		return nil, fmt.Errorf("%w: its directory names %d blocks", errUnusable, len(s.first))
	}
	s.blocks = needed(s.first, scope)
	var broken *int32
	err = db.QueryRow(ctx, `
		SELECT min(block) FROM kuberewind.record_checkpoint_blocks
		WHERE cluster = $1 AND checkpoint = $2 AND block = ANY ($3::int[]) AND sha256(data) <> digest`,
		r.cluster.Number, info.Seq, s.blocks).Scan(&broken)
	if err != nil {
		return nil, fmt.Errorf("compare checkpoint %d with its digests: %w", info.Seq, err)
	}
	if broken != nil {
		return nil, fmt.Errorf("%w: block %d has another digest", errUnusable, *broken)
	}
	return s, nil
}

// complete checks that all blocks are there.
func (r *Record) complete(ctx context.Context, db querier, info *CheckpointInfo) error {
	rows, err := db.Query(ctx, `
		SELECT block, objects, digest FROM kuberewind.record_checkpoint_blocks WHERE cluster = $1 AND checkpoint = $2 ORDER BY block`,
		r.cluster.Number, info.Seq)
	if err != nil {
		return fmt.Errorf("read checkpoint %d: %w", info.Seq, err)
	}
	var block int32
	var objects, blocks, sum int64
	var digest []byte
	all := sha256.New()
	inOrder := true
	_, err = pgx.ForEachRow(rows, []any{&block, &objects, &digest}, func() error {
		inOrder = inOrder && int64(block) == blocks
		blocks, sum = blocks+1, sum+objects
		all.Write(digest)
		return nil
	})
	switch {
	case err != nil:
		return fmt.Errorf("read checkpoint %d: %w", info.Seq, err)
	case blocks != info.Blocks || !inOrder:
		return fmt.Errorf("%w: %d of %d blocks are there", errUnusable, blocks, info.Blocks)
	case sum != info.Objects:
		return fmt.Errorf("%w: its blocks have %d objects, and not %d", errUnusable, sum, info.Objects)
	case !bytes.Equal(all.Sum(nil), info.Digest):
		return fmt.Errorf("%w: the digests of its blocks are others", errUnusable)
	}
	return nil
}

// block reads the data of a block and compares it with its digest.
func (r *Record) block(ctx context.Context, db querier, seq int64, block int32) ([]byte, error) {
	var data, digest []byte
	err := db.QueryRow(ctx, `
		SELECT data, digest FROM kuberewind.record_checkpoint_blocks WHERE cluster = $1 AND checkpoint = $2 AND block = $3`,
		r.cluster.Number, seq, block).Scan(&data, &digest)
	if isNoRows(err) {
		return nil, fmt.Errorf("%w: block %d is missing", errUnusable, block)
	}
	if err != nil {
		return nil, fmt.Errorf("read block %d of checkpoint %d: %w", block, seq, err)
	}
	if sum := sha256.Sum256(data); !bytes.Equal(sum[:], digest) {
		return nil, fmt.Errorf("%w: block %d has another digest", errUnusable, block)
	}
	return data, nil
}

// eachBlock reads the blocks that a scope needs, in their order, each compared with its digest.
func (r *Record) eachBlock(ctx context.Context, db querier, s *saved, use func(data []byte) error) error {
	rows, err := db.Query(ctx, `
		SELECT block, data, digest FROM kuberewind.record_checkpoint_blocks
		WHERE cluster = $1 AND checkpoint = $2 AND block = ANY ($3::int[]) ORDER BY block`, r.cluster.Number, s.info.Seq, s.blocks)
	if err != nil {
		return fmt.Errorf("read checkpoint %d: %w", s.info.Seq, err)
	}
	defer rows.Close()
	for _, want := range s.blocks {
		var block int32
		var data, digest []byte
		if !rows.Next() {
			return cmp.Or(rows.Err(), fmt.Errorf("%w: block %d is missing", errUnusable, want))
		}
		if err := rows.Scan(&block, &data, &digest); err != nil {
			return fmt.Errorf("read checkpoint %d: %w", s.info.Seq, err)
		}
		if sum := sha256.Sum256(data); block != want || !bytes.Equal(sum[:], digest) {
			return fmt.Errorf("%w: block %d has another digest", errUnusable, want)
		}
		if err := use(data); err != nil {
			return err
		}
	}
	rows.Close()
	return rows.Err()
}

// needed gives the blocks that hold objects of a scope.
func needed(first []checkpoint.Key, scope Scope) []int32 {
	if scope.Streams == nil {
		blocks := make([]int32, len(first))
		for i := range blocks {
			blocks[i] = int32(i + 1)
		}
		return blocks
	}
	in := make(map[int32]bool)
	for _, stream := range scope.Streams {
		from, to := checkpoint.Key{Stream: stream}, checkpoint.Key{Stream: stream + 1}
		if scope.Namespace != "" {
			from.Namespace, to = scope.Namespace, checkpoint.Key{Stream: stream, Namespace: scope.Namespace + "\x00"}
		}
		for _, block := range checkpoint.Covering(first, from, to) {
			in[block] = true
		}
	}
	var blocks []int32
	for i := range first {
		if in[int32(i+1)] {
			blocks = append(blocks, int32(i+1))
		}
	}
	return blocks
}
