package stream

import (
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/deltafifo"
	"github.com/kuberewind/kuberewind/kube"
)

// store is the store of one reflector. It drops the objects that the rules exclude, and passes the others to the
// stream's FIFO.
type store struct {
	*deltafifo.FIFO // for calls that the store does not change
	stream          *Stream
	run             *Run
}

func newStore(s *Stream, run *Run) *store {
	st := &store{FIFO: run.fifo, stream: s, run: run}
	s.decisions.list = nil
	if s.decisions.lives == nil {
		st.recall()
	}
	if s.standing.ended != "" {
		s.decisions.end()
	}
	return st
}

// recall takes over the decisions of earlier recorders. If they excluded a life under other rules, the store decides
// about it again.
func (s *store) recall() {
	again := s.stream.standing.listedUnder != s.stream.decisions.rules.String() || s.stream.listUnended()
	if left := s.stream.leftover; left != nil {
		s.stream.decisions.recall(left.Lives, again)
		return
	}
	s.stream.decisions.recall(s.stream.Decided(), again)
}

// listUnended reports whether an earlier recorder has stopped the stream within a list. That recorder's rules may have
// made some decisions. The list that is due decides again.
func (s *Stream) listUnended() bool {
	switch {
	case s.leftover != nil && s.leftover.Listing:
		return true
	case s.leftover != nil && s.leftover.Rules != nil:
		return false // The list has ended in the spool.
	}
	return s.recorded.Position() == ""
}

// filter gives a recorded object to next. If the rules exclude the object, filter moves the position past it.
func (s *store) filter(obj any, next func(any) error) error {
	kept, err := s.stream.decisions.kept([]any{obj})
	if err != nil {
		return err
	}
	if len(kept) == 1 {
		return next(obj)
	}
	return s.Skip(obj.(*kube.Object).ResourceVersion)
}

// Add implements cache.ReflectorStore.
func (s *store) Add(obj any) error { return s.saw(obj, s.filter(obj, s.FIFO.Add)) }

// Update implements cache.ReflectorStore.
func (s *store) Update(obj any) error { return s.saw(obj, s.filter(obj, s.FIFO.Update)) }

// saw notes that the revision of an accepted object belongs to this stream, even if the rules exclude the object.
func (s *store) saw(obj any, err error) error {
	if o, ok := obj.(*kube.Object); ok && err == nil {
		s.stream.rollbackStream.Saw(o, false)
	}
	return err
}

// Delete implements cache.ReflectorStore. The life has ended, and with it the decision.
func (s *store) Delete(obj any) error {
	if err := s.filter(obj, s.FIFO.Delete); err != nil {
		return err
	}
	if o, ok := obj.(*kube.Object); ok {
		s.stream.decisions.over(o)
		s.stream.rollbackStream.Saw(o, true)
	}
	return nil
}

// Bookmark implements cache.ReflectorBookmarkStore.
func (s *store) Bookmark(resourceVersion string) error {
	if err := s.FIFO.Bookmark(resourceVersion); err != nil {
		return err
	}
	s.stream.setExpiryCause("")
	return nil
}

// Proved implements reflector.ProofStore.
func (s *store) Proved(resourceVersion string) error {
	if err := s.FIFO.Proved(resourceVersion); err != nil {
		return err
	}
	s.stream.setExpiryCause("")
	return nil
}

// endsWithin bounds the time from the end of a watch to the report that the resource is not served. Within it, the
// removal of the resource has ended the watch.
const endsWithin = 5 * time.Second

// Interrupted reports why the stream cannot be followed.
func (s *store) Interrupted(cause delta.Cause, detail string) error {
	if err := s.interrupt(cause, detail); err != nil {
		return err
	}
	if cause == delta.CauseNotFound {
		s.run.markGone(s.stream.standing.interrupted == "" && !s.run.listing.Load() && time.Since(time.Unix(0, s.run.closed.Load())) < endsWithin)
	} else {
		s.run.markServed() // The server may serve the resource, or the recorder does not know.
	}
	s.stream.standing.interrupted = cause
	s.stream.rollbackStream.Interrupted(cause)
	s.stream.started.mark()
	return nil
}

// interrupt enqueues the interruption. I3: deltas that were served after a rollback, and before it was noticed, are
// incomplete.
func (s *store) interrupt(cause delta.Cause, detail string) error {
	if cause == delta.CauseHistoryReversed {
		return s.FIFO.InterruptedSince(cause, detail, s.stream.rollbackStream.GapBegin())
	}
	return s.FIFO.Interrupted(cause, detail)
}

// Resumed reports that the stream can be followed again, and that nothing was missed.
func (s *store) Resumed() error {
	if err := s.FIFO.Resumed(); err != nil {
		return err
	}
	s.stream.standing.interrupted = ""
	s.run.markServed()
	return nil
}

var _ cache.ReflectorStore = (*store)(nil)
