package verify

import (
	"github.com/kuberewind/kuberewind/internal/chain"
)

// A chainWalk reads the batches of a cluster once, by their number.
type chainWalk struct {
	cluster int32
	head    struct {
		batch  int64
		digest []byte
	}
	before   [32]byte // digest of the previous batch
	digester *chain.Digester
	linked   bool  // the digest of the batch before the oldest one is known
	dropped  int64 // last seq that was dropped with that batch
	report   ChainReport
	tables
}

// tables are the cursors that Chain reads in parallel.
type tables struct {
	batches *cursor[chainedBatch]
	deltas  *cursor[chain.Delta]
	lives   *cursor[chain.Life]
	ends    *cursor[chain.End]
	opened  *cursor[gapRow]
	closed  *cursor[gapRow]

	erasuresMade               *cursor[erasureRow]
	erasedBySeq, erasedByBatch *cursor[erasedRow]
}

func (v *chainWalk) broken(batch int64, reason string) {
	v.report.Breaks = append(v.report.Breaks, ChainBreak{Batch: batch, Reason: reason})
}
