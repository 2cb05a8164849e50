package recorder

import (
	"cmp"
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kuberewind/kuberewind/deltafifo"
	"github.com/kuberewind/kuberewind/internal/lifecycle"
	"github.com/kuberewind/kuberewind/kube"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// facts are those that cost no question, after a run that has ended, if there was one in this process. What that run has
// accepted is queued, and will be recorded before anything of the next.
func (s *stream) facts(before *streamRun) lifecycle.Facts {
	recorded := s.record.Position()
	f := lifecycle.Facts{
		Served: true, Empty: s.record.Empty() && s.left == nil, Ended: s.ended, Due: s.due,
		Position: recorded, Recorded: recorded, Newest: s.record.Newest(), Unfinished: s.record.Unfinished(),
		Refiltered: s.listedUnder != s.rules.String(), Reversed: s.reversed(before),
		Told: s.interrupted != "" || before == nil && s.record.OpenGap() != "",
	}
	switch {
	case before != nil:
		f.Run, f.Position = lifecycle.Followed, before.reflector.ResumeResourceVersion()
		if before.concluded() {
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

// next is where the stream goes on after a run that has ended, if there was one in this process, under the same definition.
func (s *stream) next(before *streamRun) lifecycle.Decision {
	f := s.facts(before)
	f.Objects = lifecycle.None
	return lifecycle.Decide(f)
}

// vacant tells whether nothing of a stream that has no run is alive.
func (r *Recorder) vacant(s *stream) bool {
	fifo := r.queue.FIFO(deltafifo.FIFOOptions{Stream: s, Name: s.name, KnownObjects: s.record.Known(), Rules: s.rules.String()})
	defer fifo.Close()
	return fifo.Tail().Vacant()
}

// decide says where the stream of a resource that is served goes on. Begins is a resource version at which its definition began,
// or empty. It asks for each fact that matters. A run that has not ended still moves: what launch finds after it is decided then,
// and the zero Decision is given.
func (h *handler) decide(ctx context.Context, s *stream, resource kube.Resource, begins string) (lifecycle.Decision, error) {
	run := s.current()
	if begins != "" && run != nil && run.concluded() {
		run.halt() // What it has seen, it has seen.
	}
	if run.runs() {
		return lifecycle.Decision{}, nil
	}
	f := s.facts(run)
	f.Begins, f.Vacant = begins, begins != "" && h.vacant(s)
	for {
		var err error
		switch d := lifecycle.Decide(f); d.Do {
		case lifecycle.LookUp:
			f.Earlier, err = h.earlier(ctx, s, resource, begins)
		case lifecycle.Wait:
			f.Earlier, err = lifecycle.Partial, s.definedLater(resource)
		case lifecycle.Ask:
			f.Objects, err = h.objects(ctx, resource, d.At)
			if f.Objects == lifecycle.Possible {
				h.log.Warn(mayBeLeft, "resource", resource.String(), "resource_version", d.At)
			}
		default:
			if f.Objects == lifecycle.Possible {
				s.ended, s.due = "", d.Reason // until it is launched
			}
			return d, nil
		}
		if err != nil {
			return lifecycle.Decision{}, err
		}
	}
}

const mayBeLeft = "objects may have outlived a definition before, and be served under the next: they are listed"

// earlier looks up whether the stream is on record up to the end of its earlier definitions, which an earlier recorder followed.
// If all definitions are recorded, one that came and went while nobody followed it is on record by then.
func (r *Recorder) earlier(ctx context.Context, s *stream, resource kube.Resource, begins string) (lifecycle.Earlier, error) {
	if !r.filter.For(kube.Definitions).Everything() {
		return lifecycle.Partial, nil
	}
	found, err := r.sink.Prior().DefinedBefore(ctx, resource.Group, resource.Name, resource.DefinitionUID)
	if err != nil {
		s.waits = waiting{} // Nothing was put on record meanwhile.
		return lifecycle.Partial, err
	}
	d := lifecycle.Definitions{UpTo: found.UpTo, Blind: found.Blind, Watched: r.definitions}
	for _, life := range found.Lives {
		l := lifecycle.Life{Created: life.Created, Ended: life.End}
		if life.End == postgres.Pruned {
			l.Ended, l.Pruned = "", true
		}
		d.Lives = append(d.Lives, l)
	}
	return d.Before(begins, s.record.Position()), nil
}

var errDefinedBefore = errors.New("what became of the definition before is not on record yet")

// definedPatience is how long a resource waits for the record of definitions. Then it goes on from its position, of which etcd may know no more.
const definedPatience = time.Minute

// waiting is how long a resource has waited, under one definition, for a fact that is needed before it is followed.
type waiting struct {
	under types.UID
	since time.Time
}

// over reports whether the patience is at an end. It begins with the first call for a definition.
func (w *waiting) over(under types.UID, patience time.Duration) bool {
	if w.under != under || w.since.IsZero() {
		*w = waiting{under, time.Now()}
	}
	return time.Since(w.since) >= patience
}

// definedLater fails with errDefinedBefore until the patience is at an end.
func (s *stream) definedLater(resource kube.Resource) error {
	if s.waits.over(resource.DefinitionUID, definedPatience) {
		return nil
	}
	return errDefinedBefore
}
