package recorder

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/deltafifo"
	"github.com/kuberewind/kuberewind/internal/lifecycle"
	"github.com/kuberewind/kuberewind/kube"
)

// loadRecorded finds the resources whose end an earlier recorder may not have seen. No stream that is opened because its
// resource is served shows what has become of them.
func (r *Recorder) loadRecorded(ctx context.Context) error {
	streams, err := r.sink.Prior().Recorded(ctx)
	if err != nil {
		return err
	}
	for _, s := range streams {
		resource := kube.Resource{Group: s.Group, Version: s.Version, Name: s.Resource, Kind: s.Kind, Namespaced: s.Namespaced, DefinitionUID: types.UID(s.DefinitionUID)}
		defined := s.DefinitionUID != "" && (s.DefinitionEnd == "" || delta.Precedes(s.Position, s.DefinitionEnd))
		if s.Scope == "" && s.Position != "" && (s.Alive || defined) && r.filter.Resource(resource.GroupResource()) {
			r.recorded = append(r.recorded, resource)
		}
	}
	return nil
}

// loadUnfollowed finds the definitions that a recorder before this one has recorded, and ended before it followed their resources.
func (r *Recorder) loadUnfollowed(ctx context.Context) error {
	definitions, err := r.sink.Prior().Unfollowed(ctx)
	if err != nil {
		return err
	}
	r.unfollowed = map[types.UID]string{}
	for _, d := range definitions {
		// What was left out then is listed: nobody was to follow it.
		if r.filterBefore == nil || r.filterBefore.Resource(schema.ParseGroupResource(d.Name)) {
			r.unfollowed[types.UID(d.UID)] = d.Created
		}
	}
	return nil
}

// An ending is on its way to put the end of a stream on record. It waits: for the last deletions, and for what of the stream lies on disk.
type ending struct {
	cancel context.CancelFunc
	done   chan struct{}
}

// stop returns when it has ended.
func (e *ending) stop() {
	if e != nil {
		e.cancel()
		<-e.done
	}
}

// retire ends the stream of a resource that is not served any more. If this process did not follow it, run is nil.
func (h *handler) retire(ctx context.Context, s *stream, run *streamRun, resource kube.Resource, at string) {
	s.ending.stop()
	ctx, cancel := context.WithCancel(ctx)
	e := &ending{cancel: cancel, done: make(chan struct{})}
	s.ending = e
	if run != nil {
		run.outlivedBy(resource)
	}
	h.retirements.Go(func() {
		defer close(e.done)
		defer cancel()
		if run != nil {
			select {
			case <-run.left():
			case <-time.After(retireAfter):
			case <-ctx.Done():
				return
			}
			run.halt()
		}
		if err := h.end(ctx, s, run, resource, at); err != nil && ctx.Err() == nil {
			h.log.Warn("the end of a resource was not recorded", "resource", s.name, "error", err)
		}
	})
}

// unserved puts on record that a resource is not served which an earlier recorder followed.
func (h *handler) unserved(ctx context.Context, resource kube.Resource, at string) error {
	if !h.filter.Resource(resource.GroupResource()) {
		return nil
	}
	// If the resource has a definition, there may have been objects, though nobody came to follow it.
	if position, err := h.sink.Prior().Position(ctx, resource.Group, resource.Name); err != nil || position == "" && resource.DefinitionUID == "" {
		return err
	}
	s, _, err := h.streamOf(ctx, resource, "")
	if err != nil {
		return err
	}
	h.retire(ctx, s, nil, resource, at)
	return nil
}

// end concludes a stream as lifecycle.Decide says.
func (r *Recorder) end(ctx context.Context, s *stream, run *streamRun, resource kube.Resource, at string) error {
	// That of the run is closed.
	fifo := r.queue.FIFO(deltafifo.FIFOOptions{Stream: s, Name: s.name, KnownObjects: s.record.Known(), Rules: s.rules.String()})
	defer fifo.Close()
	defer context.AfterFunc(ctx, fifo.Close)()
	// This comes first: nobody knows what entries on disk leave alive, and a list could not be compared with them.
	if err := fifo.Tail().AwaitMemory(); err != nil {
		return err
	}
	f := s.facts(run)
	f.Served, f.Defined, f.Ends, f.Vacant = false, resource.DefinitionUID != "", at, fifo.Tail().Vacant()
	switch d := lifecycle.Decide(f); d.Do {
	case lifecycle.Complete:
		return r.complete(s, fifo, d)
	case lifecycle.Replace:
		return r.replace(s, fifo, d)
	case lifecycle.Interrupt:
		s.interrupted = d.Cause
		return fifo.Interrupted(d.Cause, d.Detail)
	default: // Nothing: the others are of what is served.
		return nil
	}
}

// complete ends a stream of which nothing is missing.
func (r *Recorder) complete(s *stream, fifo *deltafifo.FIFO, d lifecycle.Decision) error {
	if err := fifo.Resumed(); err != nil {
		return err
	}
	s.interrupted = ""
	r.log.Info("the resource has ended, and the record of it is complete", "resource", s.name)
	return fifo.Bookmark(d.At)
}

// replace ends what lives by an empty list.
func (r *Recorder) replace(s *stream, fifo *deltafifo.FIFO, d lifecycle.Decision) error {
	const detail = "its definition was deleted, and all objects with it"
	s.interrupted = d.Cause
	if d.Cause == delta.CauseFirstList {
		r.log.Warn("a resource has ended of which nothing could be recorded", "resource", s.name)
	} else {
		if err := fifo.Interrupted(d.Cause, detail); err != nil {
			return err
		}
	}
	if err := fifo.BeginReplace(d.Cause, detail, d.From); err != nil {
		return err
	}
	s.due, s.ended = d.Reason, ""
	if err := fifo.EndReplace(d.At); err != nil {
		return err
	}
	s.interrupted, s.due, s.ended = "", lifecycle.Reason{}, d.At
	s.listedUnder = s.rules.String()
	r.log.Info("the resource has ended", "resource", s.name, "resource_version", d.At)
	return nil
}
