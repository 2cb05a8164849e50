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

// Recorded finds the resources whose end an earlier recorder may not have seen. No stream that is opened because its
// resource is served shows what has become of them.
func Recorded(ctx context.Context, prior *postgres.Prior, rules *filter.Filter) (recorded []kube.Resource, err error) {
	streams, err := prior.Recorded(ctx)
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

// Unfollowed finds the definitions that a recorder before this one has recorded, and ended before it followed their resources: by UID, with
// which resource version each was created. Before are the rules of that recorder, nil if they are not known.
func Unfollowed(ctx context.Context, prior *postgres.Prior, before *filter.Filter) (map[types.UID]string, error) {
	definitions, err := prior.Unfollowed(ctx)
	if err != nil {
		return nil, err
	}
	unfollowed := map[types.UID]string{}
	for _, d := range definitions {
		// What was left out then is listed: nobody was to follow it.
		if before == nil || before.Resource(schema.ParseGroupResource(d.Name)) {
			unfollowed[types.UID(d.UID)] = d.Created
		}
	}
	return unfollowed, nil
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
		if run != nil && !depart(ctx, run) {
			return
		}
		if err := h.options.Launcher.End(ctx, s, run, resource, at); err != nil && ctx.Err() == nil {
			h.log.Warn("the end of a resource was not recorded", "resource", s.Name(), "error", err)
		}
	})
}

// departing is a run whose resource is not served any more.
type departing interface {
	Gone() <-chan struct{} // closed when the server says so, too
	Halt()
}

// depart halts a run when its last deletions have come. It gives false if ctx has ended before.
func depart(ctx context.Context, run departing) bool {
	select {
	case <-run.Gone():
	case <-time.After(retireAfter):
	case <-ctx.Done():
		return false
	}
	run.Halt()
	return true
}

// unserved puts on record that a resource is not served which an earlier recorder followed.
func (h *Handler) unserved(ctx context.Context, resource kube.Resource, at string) error {
	if !h.options.Rules.Resource(resource.GroupResource()) {
		return nil
	}
	// If the resource has a definition, there may have been objects, though nobody came to follow it.
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
