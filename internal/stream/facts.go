package stream

import (
	"cmp"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/internal/lifecycle"
	"github.com/kuberewind/kuberewind/internal/rollback"
)

// Facts are those that cost no question. The run before has ended, or there was none in this process. What it has accepted is
// queued, and is recorded before anything of the next.
func (s *Stream) Facts(before *Run) lifecycle.Facts {
	recorded := s.record.Position()
	f := lifecycle.Facts{
		Served: true, Empty: s.record.Empty() && s.left == nil, Ended: s.standing.ended, Due: s.standing.due,
		Position: recorded, Recorded: recorded, Newest: s.record.Newest(), Unfinished: s.record.Unfinished(),
		Refiltered: s.standing.listedUnder != s.decisions.rules.String(), Reversed: s.reversed(before),
		Told: s.standing.interrupted != "" || before == nil && s.record.OpenGap() != "",
	}
	switch {
	case before != nil:
		f.Run, f.Position = lifecycle.Followed, before.reflector.ResumeResourceVersion()
		if before.Concluded() {
			f.Run = lifecycle.Concluded
		}
		if before.listing.Load() {
			f.Cut = lifecycle.Reason{Cause: before.listCause, Detail: before.listDetail}
		}
	case s.left != nil:
		f.Spooled, f.Position = true, cmp.Or(s.left.Position.Complete, recorded)
		if s.left.Listing {
			f.Cut.Cause = s.left.ListCause
		}
	}
	return f
}

// next is where the stream goes on under the same definition. A run of this process has ended before, or there was none.
func (s *Stream) next(before *Run) lifecycle.Decision {
	f := s.Facts(before)
	f.Objects = lifecycle.None
	return lifecycle.Decide(f)
}

// reversed says that the stream has left its history, and was not listed since.
func (s *Stream) reversed(before *Run) bool {
	return s.etcd.RolledBack() || s.standing.interrupted == delta.CauseHistoryReversed ||
		before == nil && s.record.OpenGap() == delta.CauseHistoryReversed && (s.left == nil || !s.left.Anew)
}

// recall takes over what a recorder before this one was served of the stream.
func (s *Stream) recall() {
	was := rollback.Recalled{Position: s.record.Position(), Known: s.record.Known(), Newest: s.newest}
	if s.left != nil && s.left.Anew {
		was = rollback.Recalled{Position: s.left.Position.Complete, Relisted: true}
	}
	if s.left != nil {
		was.Unverified, was.Spooled = s.left.Unproven, s.left.Position.Complete
	}
	was.RolledBack, s.newest = s.reversed(nil), nil
	s.etcd.Recall(was)
}
