package verify

import (
	"github.com/kuberewind/kuberewind/internal/chain"
)

// A ChainReport is the result of Chain.
type ChainReport struct {
	FirstBatch int64 // oldest on record, 0 if there is none
	LastBatch  int64
	Batches    int64 // batches whose digests were computed again
	Deltas     int64
	Erasures   int64 // erasures in the chain
	Erased     int64 // deltas that they changed, each counted once for each erasure
	// Anchored says that the record begins with its first batch. Otherwise older partitions were dropped. A prune then
	// holds the digest of the batch before the oldest one; if that prune is missing, that is a break. If deltas of the
	// oldest batch were dropped with the previous day, Chain takes the batch's digest from the record.
	Anchored bool
	Breaks   []ChainBreak // Chain stops after the batch that brings them to maxBreaks
}

// A ChainBreak is a batch whose content differs from what was written.
type ChainBreak struct {
	Batch  int64
	Reason string
}

// maxBreaks bounds a report. Chain stops reading a record with more breaks.
const maxBreaks = 100

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
