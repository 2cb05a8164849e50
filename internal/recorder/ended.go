package recorder

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kuberewind/kuberewind/deltafifo"
	"github.com/kuberewind/kuberewind/kube"
	"github.com/kuberewind/kuberewind/reflector"
)

// loadRecorded finds the resources that a recorder before this one may have followed to the last: what has become of them meanwhile is
// not seen in any stream that is opened because they are served.
func (r *Recorder) loadRecorded(ctx context.Context) error {
	streams, err := r.sink.Recorded(ctx)
	if err != nil {
		return err
	}
	for _, s := range streams {
		resource := kube.Resource{Group: s.Group, Version: s.Version, Name: s.Resource, Kind: s.Kind, Namespaced: s.Namespaced, DefinitionUID: types.UID(s.DefinitionUID)}
		ended := s.DefinitionEnd != "" && !precedes(s.Position, s.DefinitionEnd)
		if s.Scope == "" && s.Position != "" && !ended && r.filter.Resource(resource.GroupResource()) {
			r.recorded = append(r.recorded, resource)
		}
	}
	return nil
}

// unserved puts on record that a resource is not served which an earlier recorder followed.
func (r *Recorder) unserved(ctx context.Context, resource kube.Resource, at string) error {
	if !r.filter.Resource(resource.GroupResource()) {
		return nil
	}
	if position, err := r.sink.Position(ctx, resource.Group, resource.Name); err != nil || position == "" {
		return err
	}
	s, _, err := r.streamOf(ctx, resource, "")
	if err != nil {
		return err
	}
	return r.end(ctx, s, nil, at)
}

// end concludes the stream of a resource that is not served any more. What was watched up to the end of its definition, and has nothing left
// that lives, is complete. Else there is a gap: up to a resource version at which the definition was no more, and all objects with it, or
// an open one where that is not known.
func (r *Recorder) end(ctx context.Context, s *stream, run *streamRun, at string) error {
	// That of the run is closed.
	fifo := r.queue.FIFO(deltafifo.FIFOOptions{Stream: s, Name: s.name, KnownObjects: s.record.Known()})
	defer fifo.Close()
	defer context.AfterFunc(ctx, fifo.Close)()
	if run != nil && run.followed && fifo.Vacant() {
		if err := fifo.Resumed(); err != nil {
			return err
		}
		s.interrupted = ""
		r.log.Info("the resource has ended, and the record of it is complete", "resource", s.name)
		return fifo.Bookmark(at)
	}
	from := s.start(run).position
	if at == "" || !precedes(from, at) {
		if s.interrupted != "" || run == nil && s.record.OpenGap() != "" {
			return nil
		}
		s.interrupted = reflector.CauseNotFound
		return fifo.Interrupted(reflector.CauseNotFound, "the resource is not served any more")
	}
	const detail = "its definition was deleted, and all objects with it"
	if err := fifo.Interrupted(reflector.CauseNotFound, detail); err != nil {
		return err
	}
	if err := fifo.BeginReplace(reflector.CauseNotFound, detail, from); err != nil {
		return err
	}
	if err := fifo.EndReplace(at); err != nil {
		return err
	}
	s.interrupted, s.ended = "", at
	r.log.Info("the resource has ended", "resource", s.name, "resource_version", at)
	return nil
}
