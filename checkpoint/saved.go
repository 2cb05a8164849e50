package checkpoint

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// ErrUnusable says that a checkpoint differs from what its Maker wrote. No data is lost, because a checkpoint is derived.
var ErrUnusable = errors.New("it differs from what was written")

// A Scope selects the objects to read from a checkpoint. The zero value is the whole cluster.
type Scope struct {
	Streams   []int32 // nil means all
	Namespace string  // "" means all; it counts only together with Streams
}

// A Saved is a checkpoint whose blocks were compared with their digests.
type Saved struct {
	Info   Info
	First  []Key   // of each block with records
	Blocks []int32 // the blocks that the scope needs

	store Store
}

// Open compares the blocks that a scope needs with their digests, on the server. It checks the other blocks only by their
// number and their digest on record.
func (s Store) Open(ctx context.Context, info Info, scope Scope) (*Saved, error) {
	found := &Saved{Info: info, store: s}
	if err := s.complete(ctx, &info); err != nil {
		return nil, err
	}
	data, err := found.Block(ctx, 0)
	if err != nil {
		return nil, err
	}
	decoder := NewDecoder()
	defer decoder.Close()
	if found.First, err = decoder.Directory(data); err != nil {
		return nil, fmt.Errorf("%w: its directory: %w", ErrUnusable, err)
	}
	if int64(len(found.First)) != info.Blocks-1 {
		return nil, fmt.Errorf("%w: its directory names %d blocks", ErrUnusable, len(found.First))
	}
	found.Blocks = needed(found.First, scope)
	var broken *int32
	err = s.DB.QueryRow(ctx, `
		SELECT min(block) FROM kuberewind.record_checkpoint_blocks
		WHERE cluster = $1 AND checkpoint = $2 AND block = ANY ($3::int[]) AND sha256(data) <> digest`,
		s.Cluster, info.Seq, found.Blocks).Scan(&broken)
	if err != nil {
		return nil, fmt.Errorf("compare checkpoint %d with its digests: %w", info.Seq, err)
	}
	if broken != nil {
		return nil, fmt.Errorf("%w: block %d has another digest", ErrUnusable, *broken)
	}
	return found, nil
}

// complete checks that all blocks exist.
func (s Store) complete(ctx context.Context, info *Info) error {
	rows, err := s.DB.Query(ctx, `
		SELECT block, objects, digest FROM kuberewind.record_checkpoint_blocks WHERE cluster = $1 AND checkpoint = $2 ORDER BY block`,
		s.Cluster, info.Seq)
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
		return fmt.Errorf("%w: %d of %d blocks exist", ErrUnusable, blocks, info.Blocks)
	case sum != info.Objects:
		return fmt.Errorf("%w: its blocks have %d objects, and not %d", ErrUnusable, sum, info.Objects)
	case !bytes.Equal(all.Sum(nil), info.Digest):
		return fmt.Errorf("%w: the digests of its blocks differ", ErrUnusable)
	}
	return nil
}

// Block reads the data of a block and compares it with its digest.
func (s *Saved) Block(ctx context.Context, block int32) ([]byte, error) {
	var data, digest []byte
	err := s.store.DB.QueryRow(ctx, `
		SELECT data, digest FROM kuberewind.record_checkpoint_blocks WHERE cluster = $1 AND checkpoint = $2 AND block = $3`,
		s.store.Cluster, s.Info.Seq, block).Scan(&data, &digest)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, fmt.Errorf("%w: block %d is missing", ErrUnusable, block)
	}
	if err != nil {
		return nil, fmt.Errorf("read block %d of checkpoint %d: %w", block, s.Info.Seq, err)
	}
	if sum := sha256.Sum256(data); !bytes.Equal(sum[:], digest) {
		return nil, fmt.Errorf("%w: block %d has another digest", ErrUnusable, block)
	}
	return data, nil
}

// Each calls use with the blocks that the scope needs, in order. It compares each block with its digest first.
func (s *Saved) Each(ctx context.Context, use func(data []byte) error) error {
	rows, err := s.store.DB.Query(ctx, `
		SELECT block, data, digest FROM kuberewind.record_checkpoint_blocks
		WHERE cluster = $1 AND checkpoint = $2 AND block = ANY ($3::int[]) ORDER BY block`, s.store.Cluster, s.Info.Seq, s.Blocks)
	if err != nil {
		return fmt.Errorf("read checkpoint %d: %w", s.Info.Seq, err)
	}
	defer rows.Close()
	for _, want := range s.Blocks {
		var block int32
		var data, digest []byte
		if !rows.Next() {
			return cmp.Or(rows.Err(), fmt.Errorf("%w: block %d is missing", ErrUnusable, want))
		}
		if err := rows.Scan(&block, &data, &digest); err != nil {
			return fmt.Errorf("read checkpoint %d: %w", s.Info.Seq, err)
		}
		if sum := sha256.Sum256(data); block != want || !bytes.Equal(sum[:], digest) {
			return fmt.Errorf("%w: block %d has another digest", ErrUnusable, want)
		}
		if err := use(data); err != nil {
			return err
		}
	}
	rows.Close()
	return rows.Err()
}

// needed returns the blocks that hold objects of a scope.
func needed(first []Key, scope Scope) []int32 {
	if scope.Streams == nil {
		blocks := make([]int32, len(first))
		for i := range blocks {
			blocks[i] = int32(i + 1)
		}
		return blocks
	}
	in := make(map[int32]bool)
	for _, stream := range scope.Streams {
		from, to := Key{Stream: stream}, Key{Stream: stream + 1}
		if scope.Namespace != "" {
			from.Namespace, to = scope.Namespace, Key{Stream: stream, Namespace: scope.Namespace + "\x00"}
		}
		for _, block := range covering(first, from, to) {
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
