package verify

import (
	"context"
	"fmt"

	"github.com/kuberewind/kuberewind/internal/chain"
)

// undo sets the digest of a delta to the digest that its batch covers. Each erasure on record holds the digests of each
// delta before and after it, and is itself covered by the digest of a batch. So an erased delta does not count as tampered
// with. A delta that was tampered with cannot count as erased.
func (v *chainWalk) undo(ctx context.Context, d *chain.Delta) error {
	var erasures []erasedRow
	err := v.erasedBySeq.through(ctx, func(e *erasedRow) int64 { return e.Seq }, d.Seq, d.Seq, func(e *erasedRow) { erasures = append(erasures, *e) })
	for i := len(erasures) - 1; i >= 0 && err == nil; i-- {
		if erasures[i].After != d.Digest {
			v.broken(v.report.LastBatch, fmt.Sprintf("seq %d is not what the erasure of commit %d wrote", d.Seq, erasures[i].batch))
			return nil
		}
		d.Digest = erasures[i].Before
	}
	return err
}

// erasures hashes the erasures of a batch.
func (v *chainWalk) erasures(ctx context.Context, b *chainedBatch) error {
	err := v.erasuresMade.through(ctx, func(x *erasureRow) int64 { return x.batch }, b.Number, b.Number, func(x *erasureRow) {
		v.report.Erasures++
		v.digester.Erasure(&x.Erasure)
	})
	if err != nil {
		return err
	}
	return v.erasedByBatch.through(ctx, func(e *erasedRow) int64 { return e.batch }, b.Number, b.Number, func(e *erasedRow) {
		v.report.Erased++
		v.digester.Erased(&e.ErasedDelta)
	})
}

// unmade looks for erasures that no batch made.
func (v *chainWalk) unmade(ctx context.Context) error {
	extra, ok, err := v.erasedByBatch.take(ctx)
	if err != nil {
		return err
	}
	if ok {
		v.broken(extra.batch, fmt.Sprintf("seq %d is on record as erased, but no commit erased it", extra.Seq))
	}
	erasure, ok, err := v.erasuresMade.take(ctx)
	if ok {
		v.broken(erasure.batch, fmt.Sprintf("erasure %d is on record, but no commit made it", erasure.Number))
	}
	return err
}
