package verify

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/kuberewind/kuberewind/checkpoint"
	"github.com/kuberewind/kuberewind/delta"
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

// Record reads the whole record and yields each violation. It keeps every living object, compressed, and a few thousand
// rows. It skips rows that are written while it runs. Chain finds later changes. Record finds errors from the time of
// writing, and changes outside the chain. The auditor's role may call it.
func Record(ctx context.Context, rec *history.Record, o Options) iter.Seq2[Finding, error] {
	return func(yield func(Finding, error) bool) {
		v := &recordWalk{record: rec, options: o, counts: o.Counts, objects: make(map[int64]*held), last: make(map[int32]*lastOfStream)}
		if v.counts == nil {
			v.counts = new(Counts)
		}
		v.report = func(f Finding) error {
			v.counts.Findings++
			if !yield(f, nil) {
				return errStopped
			}
			return nil
		}
		if err := v.run(ctx); err != nil && !errors.Is(err, errStopped) {
			yield(Finding{}, fmt.Errorf("verify the record: %w", err))
		}
	}
}

// errStopped says that the caller has stopped reading.
var errStopped = errors.New("stopped")

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

func (v *recordWalk) run(ctx context.Context) error {
	partitions, err := v.begin(ctx)
	if err != nil {
		return err
	}
	if err := v.dropped(); err != nil || len(v.survey.Days) == 0 {
		return err
	}
	v.expected = v.survey.FirstSeq
	for i := range v.survey.Days {
		if err := v.day(ctx, &v.survey.Days[i], partitions); err != nil {
			return err
		}
	}
	if v.expected != v.survey.LastSeq+1 {
		if err := v.found(CheckSeq, v.expected, "the head is at seq %d, but the last delta on record is seq %d", v.survey.LastSeq, v.expected-1); err != nil {
			return err
		}
	}
	if err := v.positions(); err != nil {
		return err
	}
	if err := v.lives(ctx); err != nil {
		return err
	}
	return v.living(ctx)
}

// positions compares the streams with their last rows.
func (v *recordWalk) positions() error {
	for i := range v.survey.Streams {
		s := &v.survey.Streams[i]
		last := v.last[s.ID]
		if last == nil {
			last = new(lastOfStream)
		}
		if last.seq != s.LastSeq && (last.seq != 0 || s.LastSeq >= v.survey.FirstSeq) {
			if err := v.found(CheckStreams, s.LastSeq, "the last delta of %s is seq %d, but the stream says seq %d", s, last.seq, s.LastSeq); err != nil {
				return err
			}
		}
		if last.rv != "" && delta.Precedes(s.LastRV, last.rv) {
			if err := v.found(CheckStreams, last.seq, "%s is recorded up to resource version %s, but the stream says %q", s, last.rv, s.LastRV); err != nil {
				return err
			}
		}
		delete(v.last, s.ID)
	}
	for id, last := range v.last {
		if err := v.found(CheckStreams, last.seq, "stream %d has deltas, but does not exist", id); err != nil {
			return err
		}
	}
	return nil
}
