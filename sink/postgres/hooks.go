package postgres

import "time"

// Hooks tell what the sink does, for metrics and logs. Each may be nil. None may block or call the sink.
type Hooks struct {
	// Encoded is called when a batch has been made.
	Encoded func(EncodeStats)
	// Committed is called when a batch is in the database.
	Committed func(CommitStats)
	// Retrying is called when an attempt failed and another will follow.
	Retrying func(Retry)
	// Mismatch is called when a patch did not give what was served, and the whole object was stored instead (I6).
	Mismatch func(Mismatch)
	// Unfolded is called when the record of an object could not be folded at the start: its next version is stored whole.
	Unfolded func(Mismatch)
}

// EncodeStats says what became of some items.
type EncodeStats struct {
	Items      int
	Rows       int
	Types      [5]int // rows by type: [1] Added, [2] Updated, [3] Deleted, [4] Sync
	Keyframes  int    // rows with a whole object
	Skipped    int    // deltas that were recorded already (I7)
	Mismatches int
	Held       time.Duration // by how much the clock went back at most; observed_at was held at the last one
}

func (s *EncodeStats) count(r *row) {
	s.Rows++
	s.Types[r.kind]++
	if r.object != nil {
		s.Keyframes++
	}
}

// CommitStats says what a commit wrote.
type CommitStats struct {
	EncodeStats
	Batch    int64
	LastSeq  int64
	Observed time.Time // of the last thing in it
	Bytes    int       // as sent, without the protocol's own
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

// A Mismatch names an object whose text did not come out as it should.
type Mismatch struct {
	Stream int32
	Seq    int64  // of the row
	Key    string // "namespace/name" or "name"
	Err    error  // nil if the text was merely different
}
