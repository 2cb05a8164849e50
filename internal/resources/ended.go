package resources

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/internal/filter"
	"github.com/kuberewind/kuberewind/internal/stream"
	"github.com/kuberewind/kuberewind/kube"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// Recorded returns the resources whose end an earlier recorder may not have seen. If such a resource is no longer served, discovery opens no
// stream for it, so its end would never be recorded.
func Recorded(ctx context.Context, prior *postgres.Prior, rules *filter.Filter) (recorded []kube.Resource, err error) {
	streams, err := prior.Streams(ctx)
	if err != nil {
		return nil, err
	}
	for _, s := range streams {
		resource := kube.Resource{Group: s.Group, Version: s.Version, Name: s.Resource, Kind: s.Kind, Namespaced: s.Namespaced, DefinitionUID: types.UID(s.DefinitionUID)}
		defined := s.DefinitionUID != "" && (s.DefinitionEnd == "" || delta.Precedes(s.Position, s.DefinitionEnd))
		if s.Scope == "" && s.Position != "" && (s.Alive || defined) && rules.Resource(resource.GroupResource()) {
			recorded = append(recorded, resource)
		}
	}
	return recorded, nil
}

// UnfollowedDefinitions returns the definitions that an earlier recorder recorded, but whose resources it did not follow before it ended. It maps the UID
// of each to the resource version that created it. Before is the filter of that recorder, nil if it is not known.
func UnfollowedDefinitions(ctx context.Context, prior *postgres.Prior, before *filter.Filter) (map[types.UID]string, error) {
	definitions, err := prior.UnfollowedDefinitions(ctx)
	if err != nil {
		return nil, err
	}
	unfollowed := map[types.UID]string{}
	for _, d := range definitions {
		// A resource that the earlier filter excluded is listed, because no recorder was to follow it.
		if before == nil || before.Resource(schema.ParseGroupResource(d.Name)) {
			unfollowed[types.UID(d.UID)] = d.Created
		}
	}
	return unfollowed, nil
}

// stop cancels the ending and waits for its goroutine.
func (e *ending) stop() {
	if e != nil {
		e.cancel()
		<-e.done
	}
}

// retire ends the stream of a resource that is no longer served. If this process did not follow it, run is nil.
func (h *Handler) retire(ctx context.Context, s *stream.Stream, run *stream.Run, resource kube.Resource, at string) {
	h.endings[resource.GroupResource()].stop()
	ctx, cancel := context.WithCancel(ctx)
	e := &ending{cancel: cancel, done: make(chan struct{})}
	h.endings[resource.GroupResource()] = e
	if run != nil {
		run.OutlivedBy(resource)
	}
	h.retirements.Go(func() {
		defer close(e.done)
		defer cancel()
		if run != nil && !haltAtEnd(ctx, run) {
			return
		}
		if err := h.options.Launcher.End(ctx, s, run, resource, at); err != nil && ctx.Err() == nil {
			h.log.Warn("the end of a resource was not recorded", "resource", s.Name(), "error", err)
		}
	})
}

// endingRun is a run whose resource is no longer served.
type endingRun interface {
	Gone() <-chan struct{} // closed when the watch shows that the resource has ended, too
	Halt()
}

// haltAtEnd halts a run after its last deletions, or after retireAfter. It returns false if ctx ends first.
func haltAtEnd(ctx context.Context, run endingRun) bool {
	select {
	case <-run.Gone():
	case <-time.After(retireAfter):
	case <-ctx.Done():
		return false
	}
	run.Halt()
	return true
}

// unserved records that a resource is no longer served which an earlier recorder followed.
func (h *Handler) unserved(ctx context.Context, resource kube.Resource, at string) error {
	if !h.options.Rules.Resource(resource.GroupResource()) {
		return nil
	}
	// If the resource has a definition, it may have had objects, even if no recorder followed it.
	if position, err := h.options.Prior.Position(ctx, resource.Group, resource.Name); err != nil || position == "" && resource.DefinitionUID == "" {
		return err
	}
	s, _, err := h.options.Streams.Open(ctx, resource, "")
	if err != nil {
		return err
	}
	h.retire(ctx, s, nil, resource, at)
	return nil
}

// retireAfter is how long a stream may take to end by itself after its resource is no longer served. Its last deletions may still arrive.
const retireAfter = time.Minute
