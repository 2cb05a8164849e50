package session

import (
	"context"
	"time"

	"github.com/kuberewind/kuberewind/history"
)

// momentsRead is the most deltas whose times a session reads, and over which it advances, at once.
const momentsRead = 1000

// steps advance a root over deltas and ends of gaps when their time comes.
type steps struct {
	past     Cluster
	root     Root
	upcoming []history.Moment // the next steps, in order
	passed   int64            // last commit that ended a gap without a delta, and that the root has passed
}

// jump moves the root to a place.
func (s *steps) jump(to *place) {
	s.upcoming, s.passed = nil, to.ends
	s.root.Jump(to.seq, to.ends)
}

// forget makes advance read the next steps again.
func (s *steps) forget() { s.upcoming = nil }

// empty reports whether the next steps must be read.
func (s *steps) empty() bool { return len(s.upcoming) == 0 }

// advance moves the root to the last step whose time has come, and returns that step. If no steps follow, end is the end of
// the record.
func (s *steps) advance(ctx context.Context, shown time.Time) (to history.Moment, end time.Time, err error) {
	if to, end, err = s.due(ctx, shown); err != nil || to.Seq == 0 {
		return to, end, err
	}
	if err = s.root.Advance(ctx, to.Seq, to.Batch); err == nil {
		s.passed = max(s.passed, to.Batch)
	}
	return to, end, err
}

// due returns the last upcoming delta or end of a gap whose time has come, if there is one. If no steps follow, end is the
// end of the record.
func (s *steps) due(ctx context.Context, shown time.Time) (to history.Moment, end time.Time, err error) {
	if len(s.upcoming) == 0 {
		if s.upcoming, err = s.past.Timeline.Moments(ctx, history.Moment{Seq: s.root.Seq(), Batch: s.passed}, momentsRead); err != nil {
			return to, end, err
		}
	}
	if len(s.upcoming) == 0 {
		extent, err := s.past.Record.Extent(ctx)
		return to, extent.LastAt, err
	}
	for len(s.upcoming) > 0 && !s.upcoming[0].At.After(shown) {
		to, s.upcoming = s.upcoming[0], s.upcoming[1:]
	}
	return to, end, nil
}
