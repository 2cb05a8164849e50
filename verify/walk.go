package verify

import (
	"fmt"
	"time"

	"github.com/kuberewind/kuberewind/checkpoint"
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

// A recordWalk reads all deltas once.
type recordWalk struct {
	record  *history.Record
	options Options
	counts  *Counts
	report  func(Finding) error

	survey      history.Survey
	checkpoints []checkpoint.Info // checkpoints of the survey that are not reached yet
	objects     map[int64]*held
	last        map[int32]*lastOfStream
	generation  map[int32]time.Time // when the server's history of a stream was last rolled back: earlier resource versions cannot be compared
	born, ended int64
	expected    int64 // next seq
	observed    time.Time
	packed      []byte
}

func (v *recordWalk) found(check Check, seq int64, format string, args ...any) error {
	return v.report(Finding{Check: check, Seq: seq, Text: fmt.Sprintf(format, args...)})
}

// A held is a living object as folded from the deltas so far.
type held struct {
	seq    int64
	stream int32
	day    time.Time
	doc    []byte // s2; nil if it cannot be folded
	digest [16]byte
}

type lastOfStream struct {
	seq int64
	rv  string // of its watch
}

// exactly formats a time for a finding.
func exactly(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
