package resources

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kuberewind/kuberewind/internal/lifecycle"
	"github.com/kuberewind/kuberewind/internal/stream"
	"github.com/kuberewind/kuberewind/kube"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// decide says where the stream of a resource that is served goes on. Begins is a resource version at which its definition began,
// or empty. A run that has not ended still moves: what Launch finds after it is decided then, and the zero Decision is given.
func (h *Handler) decide(ctx context.Context, s *stream.Stream, resource kube.Resource, begins string) (lifecycle.Decision, error) {
	run := s.Current()
	if begins != "" && run != nil && run.Concluded() {
		run.Halt() // What it has seen, it has seen.
	}
	if run.Runs() {
		return lifecycle.Decision{}, nil
	}
	f := s.Facts(run)
	f.Begins, f.Vacant = begins, begins != "" && h.options.Launcher.Vacant(s)
	d, err := h.resolve(ctx, resource, &f, s.Record().Position)
	if err == nil && f.Objects == lifecycle.Possible {
		s.ListDue(d.Reason) // until it is launched
	}
	return d, err
}

// resolve asks for each fact that matters, until lifecycle.Decide can decide. Recorded gives the position on record.
func (h *Handler) resolve(ctx context.Context, resource kube.Resource, f *lifecycle.Facts, recorded func() string) (d lifecycle.Decision, err error) {
	for {
		switch d = lifecycle.Decide(*f); d.Do {
		case lifecycle.LookUp:
			f.Earlier, err = h.earlier(ctx, resource, f.Begins, recorded)
		case lifecycle.Wait:
			f.Earlier, err = lifecycle.Partial, h.definedLater(resource)
		case lifecycle.Ask:
			f.Objects, err = h.objects(ctx, resource, d.At)
			if f.Objects == lifecycle.Possible {
				h.log.Warn(mayBeLeft, "resource", resource.String(), "resource_version", d.At)
			}
		default:
			return d, nil
		}
		if err != nil {
			return lifecycle.Decision{}, err
		}
	}
}

const mayBeLeft = "objects may have outlived a definition before, and be served under the next: they are listed"

// earlier looks up whether a stream is on record up to the end of its earlier definitions, which an earlier recorder followed.
// If all definitions are recorded, one that came and went while nobody followed it is on record by then.
func (h *Handler) earlier(ctx context.Context, resource kube.Resource, begins string, recorded func() string) (lifecycle.Earlier, error) {
	if !h.options.Rules.For(kube.Definitions).Everything() {
		return lifecycle.Partial, nil
	}
	found, err := h.options.Prior.DefinedBefore(ctx, resource.Group, resource.Name, resource.DefinitionUID)
	if err != nil {
		delete(h.waits, resource.GroupResource()) // Nothing was put on record meanwhile.
		return lifecycle.Partial, err
	}
	d := lifecycle.Definitions{UpTo: found.UpTo, Blind: found.Blind, Watched: h.options.Definitions}
	for _, life := range found.Lives {
		l := lifecycle.Life{Created: life.Created, Ended: life.End}
		if life.End == postgres.Pruned {
			l.Ended, l.Pruned = "", true
		}
		d.Lives = append(d.Lives, l)
	}
	return d.Before(begins, recorded()), nil
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
func (h *Handler) definedLater(resource kube.Resource) error {
	gr := resource.GroupResource()
	if h.waits[gr] == nil {
		h.waits[gr] = &waiting{}
	}
	if h.waits[gr].over(resource.DefinitionUID, definedPatience) {
		return nil
	}
	return errDefinedBefore
}
