package session

import (
	"context"
	"time"

	"github.com/kuberewind/kuberewind/history"
)

// momentsRead is how many deltas a session knows the times of, and advances by, at once.
const momentsRead = 1000

// steps bring a root forward, delta by delta and end by end of gaps, as their time comes.
type steps struct {
	past     Cluster
	root     Root
	upcoming []history.Moment // the next ones, in order
	passed   int64            // last commit that ended a gap without a delta, and that the root has come to
}

// jump brings the root to a place.
func (s *steps) jump(to *place) {
	s.upcoming, s.passed = nil, to.ends
	s.root.Jump(to.seq, to.ends)
}

// forget has the next ones read again.
func (s *steps) forget() { s.upcoming = nil }

// empty reports whether the next ones have to be read.
func (s *steps) empty() bool { return len(s.upcoming) == 0 }

// advance brings the root to the last step whose time has come, and gives that. end is until when the record goes, if nothing comes any more.
func (s *steps) advance(ctx context.Context, shown time.Time) (to history.Moment, end time.Time, err error) {
	if to, end, err = s.due(ctx, shown); err != nil || to.Seq == 0 {
		return to, end, err
	}
	if err = s.root.Advance(ctx, to.Seq, to.Batch); err == nil {
		s.passed = max(s.passed, to.Batch)
	}
	return to, end, err
}

// due gives the last of the next deltas and ends of gaps whose time has come, if there is one. end is until when the record goes, if nothing comes any more.
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
