package verify

import (
	"fmt"
	"time"

	"github.com/kuberewind/kuberewind/checkpoint"
	"github.com/kuberewind/kuberewind/history"
)

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
