package stream

import (
	"github.com/kuberewind/kuberewind/delta"
)

// ReplacePage receives one page of a list.
func (s *store) ReplacePage(list []any, resourceVersion string) error {
	kept, err := s.filtered(list)
	if err != nil {
		return err
	}
	// The queue transforms the objects in place; after that they are as the record has them.
	if err := s.FIFO.ReplacePage(kept, resourceVersion); err != nil {
		return err
	}
	s.stream.rollbackStream.Shown(list)
	return nil
}

// BeginReplace begins a list.
func (s *store) BeginReplace(cause delta.Cause, detail, fromResourceVersion string) error {
	cause, detail = s.because(cause, detail)
	s.stream.decisions.beginList()
	s.run.listCause = cause
	s.run.listing.Store(true)
	s.run.markServed()
	s.stream.rollbackStream.Listing(cause)
	if cause != delta.CauseFirstList {
		// I3: the record gets items of a list before the list ends, and the end may not come. So the gap is recorded
		// first.
		if err := s.interrupt(cause, detail); err != nil {
			return err
		}
	}
	return s.FIFO.BeginReplace(cause, detail, fromResourceVersion)
}

// Unreadable says that the list holds an object that cannot be read.
func (s *store) Unreadable(key string) error {
	s.stream.decisions.unread()
	return s.FIFO.Unreadable(key)
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

// EndReplace ends a list.
func (s *store) EndReplace(resourceVersion string) error {
	s.stream.decisions.endList()
	if err := s.FIFO.EndReplace(resourceVersion); err != nil {
		return err
	}
	s.stream.standing.interrupted, s.stream.standing.listedUnder = "", s.stream.decisions.rules.String()
	s.stream.setExpiryCause("")
	s.stream.rollbackStream.Listed(resourceVersion)
	s.run.listDetail = ""
	s.run.listing.Store(false)
	s.stream.started.mark()
	return nil
}

// AbortReplace aborts a list.
func (s *store) AbortReplace() {
	s.stream.decisions.abortList()
	s.FIFO.AbortReplace()
}
