package postgres

import (
	"time"

	"github.com/kuberewind/kuberewind/delta"
)

// Hooks report what the sink does, for metrics and logs. Each may be nil. None may block or call the sink.
type Hooks struct {
	// Encoded is called after Encode has made a batch.
	Encoded func(EncodeStats)
	// Committed is called after a batch is in the database.
	Committed func(CommitStats)
	// Retrying is called when an attempt failed and a retry will follow.
	Retrying func(Retry)
	// Mismatch is called when a patch did not reproduce the version that was served, and the sink stored the whole
	// object instead (I6).
	Mismatch func(Mismatch)
	// Unfolded is called when the sink could not fold an object from the record as it opened a stream. It stores the
	// next version whole.
	Unfolded func(Mismatch)
	// Gap is called when a gap has been opened or closed, or both, in the database.
	Gap func(GapChange)
}

// EncodeStats counts what Encode made of some items.
type EncodeStats struct {
	Items      int
	Rows       int
	Types      [5]int // rows by type: [1] Added, [2] Updated, [3] Deleted, [4] Sync
	Keyframes  int    // rows with a whole object
	Skipped    int    // deltas that were already recorded (I7)
	Mismatches int
}

func (s *EncodeStats) count(r *row) {
	s.Rows++
	s.Types[r.Kind]++
	if r.object != nil {
		s.Keyframes++
	}
}

// CommitStats describes what a commit wrote.
type CommitStats struct {
	EncodeStats
	Batch    int64
	LastSeq  int64
	Observed time.Time // when its last item was observed
	Bytes    int       // as sent, without the overhead of the protocol
	Attempts int
	Latency  time.Duration // of all attempts together
}

// A Retry is an attempt that failed.
type Retry struct {
	Class   Class
	Attempt int
	Wait    time.Duration // until the next attempt
	Err     error
}

// A Mismatch names an object whose text was not as expected.
type Mismatch struct {
	Stream int32
	Seq    int64  // of the row
	Key    string // "namespace/name" or "name"
	Err    error  // nil if the text was only different
}

// A GapChange is a gap that a commit has opened, closed, or both.
type GapChange struct {
	Group, Resource, Scope string // of the stream
	Opened, Closed         bool

	Cause    delta.Cause
	Detail   string
	FromRV   string    // the stream was complete up to it; "" if it never was
	FromTime time.Time // zero if it never was
	ToRV     string    // the stream is complete again from it; "" while open
	ToTime   time.Time // zero while open

	// Outcome says how the gap ended: resumed, relisted or equal. Found counts the objects of the list for the last
	// two.
	Outcome delta.Outcome
	Found
}

// Found counts the objects of a list that closed a gap.
type Found struct{ Appeared, Changed, Vanished, Unchanged int64 }

// Missed reports whether versions may have been missed: a list closed the gap.
func (g *GapChange) Missed() bool { return g.Closed && g.Outcome != delta.OutcomeResumed }

func (s *Sink) gapChange(batch int64, c *gapChange) GapChange {
	of := s.streams.numbered(c.Stream).identity()
	g := GapChange{
		Group: of.group, Resource: of.resource, Scope: of.scope,
		Opened: c.created, Closed: c.closed == batch, Cause: c.Cause, Detail: c.Detail,
		FromRV: textOf(c.FromRV), FromTime: timeOf(c.FromAt), ToRV: textOf(c.ToRV), ToTime: timeOf(c.ToAt), Outcome: c.Outcome,
	}
	if n := c.Counts; n != nil {
		g.Appeared, g.Changed, g.Vanished, g.Unchanged = n[0], n[1], n[2], n[3]
	}
	return g
}

// timeOf returns the zero time for nil.
func timeOf(at *int64) time.Time {
	if at == nil {
		return time.Time{}
	}
	return micros(*at)
}

// notifyGaps calls the hook for each gap of a batch that is in the database.
func (s *Sink) notifyGaps(b *Batch) {
	if s.cfg.Hooks.Gap == nil {
		return
	}
	for i := range b.gaps {
		s.cfg.Hooks.Gap(s.gapChange(b.after.batch, &b.gaps[i]))
	}
}

// OpenGaps returns the number of streams that have an open gap.
func (s *Sink) OpenGaps() int {
	open := 0
	for st := range s.streams.all() {
		if st.state().gap != nil {
			open++
		}
	}
	return open
}
