package resources

import (
	"context"
	"errors"
	"time"

	"github.com/kuberewind/kuberewind/internal/lifecycle"
	"github.com/kuberewind/kuberewind/internal/stream"
	"github.com/kuberewind/kuberewind/kube"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// decide decides where the stream of a served resource resumes. Begins is the resource version at which its definition began, or empty. If
// a run of the stream has not ended, its position still moves. Then decide returns the zero Decision, and Launch decides after that run.
func (h *Handler) decide(ctx context.Context, s *stream.Stream, resource kube.Resource, begins string) (lifecycle.Decision, error) {
	run := s.Current()
	if begins != "" && run != nil && run.Concluded() {
		run.Halt() // It sees no more events of this definition.
	}
	if run.Running() {
		return lifecycle.Decision{}, nil
	}
	f := s.Facts(run)
	f.Begins, f.Vacant = begins, begins != "" && h.options.Launcher.Vacant(s)
	d, err := h.resolve(ctx, resource, &f, s.Recorded().Position)
	if err == nil && f.Objects == lifecycle.Possible {
		s.ListDue(d.Reason) // holds until Launch
	}
	return d, err
}

// resolve collects the facts that lifecycle.Decide requests, until it can decide. The function recorded returns the position on record.
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
				h.log.Warn(mayOutlive, "resource", resource.String(), "resource_version", d.At)
			}
		default:
			return d, nil
		}
		if err != nil {
			return lifecycle.Decision{}, err
		}
	}
}

// earlier looks up whether the record of a stream reaches the end of all earlier definitions. It needs the record of all definitions: that
// also holds a definition that came and went while no recorder followed its resource.
func (h *Handler) earlier(ctx context.Context, resource kube.Resource, begins string, recorded func() string) (lifecycle.Earlier, error) {
	if !h.options.Rules.For(kube.Definitions).Everything() {
		return lifecycle.Partial, nil
	}
	found, err := h.options.Prior.DefinedBefore(ctx, resource.Group, resource.Name, resource.DefinitionUID)
	if err != nil {
		delete(h.waits, resource.GroupResource()) // The database does not answer, so nothing was recorded meanwhile.
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

var errDefinedBefore = errors.New("the deletion of the previous definition is not recorded yet")

// definedPatience is how long a resource waits for the record of definitions. Then its stream resumes from its position, which etcd may have
// compacted by then.
const definedPatience = time.Minute

// definedLater returns errDefinedBefore until the wait has lasted for definedPatience.
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
