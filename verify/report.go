package verify

import (
	"github.com/kuberewind/kuberewind/history"
)

// Options are the options of Record.
type Options struct {
	// Progress is called from time to time.
	Progress func(history.Progress)
	// Counts is filled while Record runs; nil discards them.
	Counts *Counts
}

// A Check is one of the checks of a record.
type Check string

// These are the checks.
const (
	CheckSeq        Check = "seq"        // seq increases from the first one without holes, and observed_at does not decrease
	CheckFold       Check = "fold"       // each version folds to its digest
	CheckOld        Check = "old"        // the old values in patches equal the previous version
	CheckKeyframe   Check = "keyframe"   // the first row of a life in a day is a keyframe, and keyframes agree with their patches
	CheckDays       Check = "days"       // the bounds in days equal those of the rows
	CheckPartition  Check = "partition"  // partitions hold only their day, and none is missing
	CheckLives      Check = "lives"      // lives begin with their first delta, have the owners of its version, and end with their deletion. A recorder that starts finds the living ones
	CheckStreams    Check = "streams"    // positions of streams equal their last rows
	CheckCheckpoint Check = "checkpoint" // each checkpoint equals the folded deltas
	CheckChain      Check = "chain"      // each batch has the digest of what it wrote; Chain makes this check, and Record the others
)

// A Finding is something that is wrong.
type Finding struct {
	Check Check
	Seq   int64 // 0 if the finding is not about a single delta
	Text  string
}

// Counts count what Record checked.
type Counts struct {
	Deltas, Lives, Live, Patches, Keyframes, Days, Streams, Checkpoints, CheckpointObjects, Findings int64
}

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
