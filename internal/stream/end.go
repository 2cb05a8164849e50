package stream

import (
	"context"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/deltafifo"
	"github.com/kuberewind/kuberewind/internal/lifecycle"
	"github.com/kuberewind/kuberewind/kube"
)

// End concludes a stream whose resource is not served any more, as lifecycle.Decide says. Its run has ended; there may
// have been none. At is the resource version of its end, empty if that is not known. No run of the stream is launched
// before End returns.
func (l *Launcher) End(ctx context.Context, s *Stream, run *Run, resource kube.Resource, at string) error {
	// The FIFO of the run is closed.
	fifo := l.Queue.FIFO(s.FIFOOptions())
	defer fifo.Close()
	defer context.AfterFunc(ctx, fifo.Close)()
	// This comes first: entries on disk may change which objects are alive, and a list cannot be compared with them.
	if err := fifo.Tail().AwaitMemory(); err != nil {
		return err
	}
	f := s.Facts(run)
	f.Served, f.Defined, f.Ends, f.Vacant = false, resource.DefinitionUID != "", at, fifo.Tail().Vacant()
	switch d := lifecycle.Decide(f); d.Do {
	case lifecycle.Complete:
		return l.complete(s, fifo, d)
	case lifecycle.Replace:
		return l.replace(s, fifo, d)
	case lifecycle.Interrupt:
		s.standing.interrupted = d.Cause
		s.counters.up(0)
		return fifo.Interrupted(d.Cause, d.Detail)
	default: // Nothing: the other decisions are for a served resource.
		if s.counters.ended(); f.GapOpen {
			s.counters.up(0)
		}
		return nil
	}
}

// complete ends a stream with a complete record.
func (l *Launcher) complete(s *Stream, fifo *deltafifo.FIFO, d lifecycle.Decision) error {
	if err := fifo.Resumed(); err != nil {
		return err
	}
	s.standing.interrupted = ""
	s.counters.ended()
	l.Log.Info("the resource has ended; its record is complete", "resource", s.Name())
	return fifo.Bookmark(d.At)
}

// replace ends the living objects with an empty list.
func (l *Launcher) replace(s *Stream, fifo *deltafifo.FIFO, d lifecycle.Decision) error {
	const detail = "its definition was deleted, and all objects with it"
	s.standing.interrupted = d.Cause
	if d.Cause == delta.CauseFirstList {
		l.Log.Warn("the resource ended before its first list; nothing of it is recorded", "resource", s.Name())
	} else {
		if err := fifo.Interrupted(d.Cause, detail); err != nil {
			return err
		}
	}
	if err := fifo.BeginReplace(d.Cause, detail, d.From); err != nil {
		return err
	}
	s.standing.due, s.standing.ended = d.Reason, ""
	if err := fifo.EndReplace(d.At); err != nil {
		return err
	}
	s.standing.interrupted, s.standing.due, s.standing.ended = "", lifecycle.Reason{}, d.At
	s.standing.listedUnder = s.decisions.rules.String()
	s.counters.ended()
	l.Log.Info("the resource has ended", "resource", s.Name(), "resource_version", d.At)
	return nil
}
