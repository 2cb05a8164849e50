package stream

import (
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/deltafifo"
	"github.com/kuberewind/kuberewind/kube"
)

// store is where a reflector puts what it is served. It leaves out what is not to be recorded, and hands the rest to the
// stream's FIFO. It is used by one reflector.
type store struct {
	*deltafifo.FIFO // takes what the store does not change
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

// recall takes over the decisions of the recorders before this one. What they left out under other rules is decided anew.
func (s *store) recall() {
	anew := s.stream.standing.listedUnder != s.stream.decisions.rules.String() || s.stream.listUnended()
	if left := s.stream.left; left != nil {
		s.stream.decisions.recall(left.Lives, anew)
		return
	}
	s.stream.decisions.recall(s.stream.Decided(), anew)
}

// listUnended reports whether an earlier recorder has left the stream within a list. Some decisions may be by that recorder's
// rules. The list that is due takes them anew.
func (s *Stream) listUnended() bool {
	switch {
	case s.left != nil && s.left.Listing:
		return true
	case s.left != nil && s.left.Rules != nil:
		return false // It has ended in the spool.
	}
	return s.record.Position() == ""
}

// pass gives the object to next, or, when it is left out, moves the position past it.
func (s *store) pass(obj any, next func(any) error) error {
	kept, err := s.stream.decisions.kept([]any{obj})
	if err != nil {
		return err
	}
	if len(kept) == 1 {
		return next(obj)
	}
	return s.Pass(obj.(*kube.Object).ResourceVersion)
}

// Add implements cache.ReflectorStore.
func (s *store) Add(obj any) error { return s.saw(obj, s.pass(obj, s.FIFO.Add)) }

// Update implements cache.ReflectorStore.
func (s *store) Update(obj any) error { return s.saw(obj, s.pass(obj, s.FIFO.Update)) }

// saw notes whose the revision is of what was accepted, also where it is left out.
func (s *store) saw(obj any, err error) error {
	if o, ok := obj.(*kube.Object); ok && err == nil {
		s.stream.etcd.Saw(o, false)
	}
	return err
}

// Delete implements cache.ReflectorStore. The life is over, and with it the decision.
func (s *store) Delete(obj any) error {
	if err := s.pass(obj, s.FIFO.Delete); err != nil {
		return err
	}
	if o, ok := obj.(*kube.Object); ok {
		s.stream.decisions.over(o)
		s.stream.etcd.Saw(o, true)
	}
	return nil
}

// Bookmark implements cache.ReflectorBookmarkStore.
func (s *store) Bookmark(resourceVersion string) error {
	if err := s.FIFO.Bookmark(resourceVersion); err != nil {
		return err
	}
	s.stream.excused("")
	return nil
}

// Proved implements reflector.ProofStore.
func (s *store) Proved(resourceVersion string) error {
	if err := s.FIFO.Proved(resourceVersion); err != nil {
		return err
	}
	s.stream.excused("")
	return nil
}

// ReplacePage takes one page of a list.
func (s *store) ReplacePage(list []any, resourceVersion string) error {
	kept, err := s.filtered(list)
	if err != nil {
		return err
	}
	// The queue changes the objects; then they are as they are recorded.
	if err := s.FIFO.ReplacePage(kept, resourceVersion); err != nil {
		return err
	}
	s.stream.etcd.Shown(list)
	return nil
}

// Replace implements cache.ReflectorStore.
func (s *store) Replace(list []any, resourceVersion string) error {
	kept, err := s.filtered(list)
	if err != nil {
		return err
	}
	return s.FIFO.Replace(kept, resourceVersion)
}

func (s *store) filtered(list []any) ([]any, error) {
	kept, err := s.stream.decisions.kept(list)
	if err == nil {
		s.stream.decisions.shown(list)
	}
	return kept, err
}

// BeginReplace begins a list.
func (s *store) BeginReplace(cause delta.Cause, detail, fromResourceVersion string) error {
	cause, detail = s.because(cause, detail)
	s.stream.decisions.beginList()
	s.run.listCause = cause
	s.run.listing.Store(true)
	s.run.returns()
	s.stream.etcd.Listing(cause)
	if cause != delta.CauseFirstList {
		// I3: what a list shows is recorded before its end, and the end may not come. So the gap is on record first.
		if err := s.interrupt(cause, detail); err != nil {
			return err
		}
	}
	return s.FIFO.BeginReplace(cause, detail, fromResourceVersion)
}

// Unread says that the list holds an object that cannot be read.
func (s *store) Unread(key string) error {
	s.stream.decisions.unread()
	return s.FIFO.Unread(key)
}

// EndReplace ends it.
func (s *store) EndReplace(resourceVersion string) error {
	s.stream.decisions.endList()
	if err := s.FIFO.EndReplace(resourceVersion); err != nil {
		return err
	}
	s.stream.standing.interrupted, s.stream.standing.listedUnder = "", s.stream.decisions.rules.String()
	s.stream.excused("")
	s.stream.etcd.Listed(resourceVersion)
	s.run.listDetail = ""
	s.run.listing.Store(false)
	s.stream.settled.settle()
	return nil
}

// AbortReplace gives up a list.
func (s *store) AbortReplace() {
	s.stream.decisions.abortList()
	s.FIFO.AbortReplace()
}

// endsWithin is how soon after the end of its watch a resource is known not to be served any more, if that ended the watch.
const endsWithin = 5 * time.Second

// Interrupted says why the stream cannot be followed.
func (s *store) Interrupted(cause delta.Cause, detail string) error {
	if err := s.interrupt(cause, detail); err != nil {
		return err
	}
	if cause == delta.CauseNotFound {
		s.run.leaves(s.stream.standing.interrupted == "" && !s.run.listing.Load() && time.Since(time.Unix(0, s.run.closed.Load())) < endsWithin)
	} else {
		s.run.returns() // or nothing is known of that
	}
	s.stream.standing.interrupted = cause
	s.stream.etcd.Interrupted(cause)
	s.stream.settled.settle()
	return nil
}

// interrupt puts it on record. I3: what was served after a history had gone backwards, and before that was noticed, is not complete.
func (s *store) interrupt(cause delta.Cause, detail string) error {
	if cause == delta.CauseHistoryReversed {
		return s.FIFO.InterruptedSince(cause, detail, s.stream.etcd.GapBegin())
	}
	return s.FIFO.Interrupted(cause, detail)
}

// Resumed says that it can, and that nothing was missed.
func (s *store) Resumed() error {
	if err := s.FIFO.Resumed(); err != nil {
		return err
	}
	s.stream.standing.interrupted = ""
	s.run.returns()
	return nil
}

var _ cache.ReflectorStore = (*store)(nil)
