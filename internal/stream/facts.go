package stream

import (
	"cmp"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/internal/lifecycle"
	"github.com/kuberewind/kuberewind/internal/rollback"
)

// Facts returns the facts that need no request. The previous run has ended, or there was none in this process. Its
// accepted entries are queued, and are recorded before any entry of the next run.
func (s *Stream) Facts(before *Run) lifecycle.Facts {
	recorded := s.recorded.Position()
	f := lifecycle.Facts{
		Served: true, Empty: s.recorded.Empty() && s.leftover == nil, Ended: s.standing.ended, Due: s.standing.due,
		Position: recorded, Recorded: recorded, Newest: s.recorded.Newest(), Unfinished: s.recorded.Unfinished(),
		Refiltered: s.standing.listedUnder != s.decisions.rules.String(), RolledBack: s.rolledBack(before),
		GapOpen: s.standing.interrupted != "" || before == nil && s.recorded.OpenGap() != "",
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
	case s.leftover != nil:
		f.Spooled, f.Position = true, cmp.Or(s.leftover.Position.Complete, recorded)
		if s.leftover.Listing {
			f.Cut.Cause = s.leftover.ListCause
		}
	}
	return f
}

// next decides where the stream goes on under the same definition. The previous run of this process has ended, or there
// was none.
func (s *Stream) next(before *Run) lifecycle.Decision {
	f := s.Facts(before)
	f.Objects = lifecycle.None
	return lifecycle.Decide(f)
}

// rolledBack reports whether the stream's history went backwards and no list has come since.
func (s *Stream) rolledBack(before *Run) bool {
	return s.rollbackStream.RolledBack() || s.standing.interrupted == delta.CauseHistoryReversed ||
		before == nil && s.recorded.OpenGap() == delta.CauseHistoryReversed && (s.leftover == nil || !s.leftover.NewHistory)
}

// recall passes the versions that an earlier recorder was served of the stream to the rollback detection.
func (s *Stream) recall() {
	was := rollback.Recalled{Position: s.recorded.Position(), Known: s.recorded.Known(), Newest: s.newest, Begun: s.recorded.New() && s.leftover == nil}
	if s.leftover != nil && s.leftover.NewHistory {
		was = rollback.Recalled{Position: s.leftover.Position.Complete, Relisted: true}
	}
	if s.leftover != nil {
		was.Unverified, was.Spooled, was.SpooledRevisions = s.leftover.Unverified, s.leftover.Position.Complete, s.leftover.Revisions
		s.leftover.Revisions = nil // They can be many, and are needed only once.
	}
	was.RolledBack, s.newest = s.rolledBack(nil), nil
	s.rollbackStream.Recall(was)
}
