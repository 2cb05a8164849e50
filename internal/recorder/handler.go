package recorder

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kuberewind/kuberewind/internal/lifecycle"
	"github.com/kuberewind/kuberewind/kube"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// retireAfter is how long a stream whose resource is no longer served may take to end by itself. Its last deletions may still
// be on their way.
const retireAfter = time.Minute

// handler starts and stops streams as resources come and go. Its calls come one at a time.
type handler struct {
	*Recorder
	giveUp context.CancelCauseFunc
	failed error // why giveUp was called
	// asking are the resources that are to be followed once it is known whether objects have outlived a definition.
	asking map[schema.GroupResource]*asking
}

func newHandler(r *Recorder, giveUp context.CancelCauseFunc) *handler {
	return &handler{Recorder: r, giveUp: giveUp, asking: map[schema.GroupResource]*asking{}}
}

// Added implements kube.Handler.
func (h *handler) Added(ctx context.Context, resource kube.Resource, since string) error {
	h.documents.Changed()
	h.schemas.Defined(resource)
	if !h.filter.Resource(resource.GroupResource()) {
		h.log.Debug("resource left out by the filter", "resource", resource.String())
		return nil
	}
	return h.start(ctx, resource, since)
}

// Changed implements kube.Handler: the stream goes on in the new version where it was.
func (h *handler) Changed(ctx context.Context, before, after kube.Resource) error {
	h.documents.Changed()
	h.schemas.Defined(after)
	if before.Version == after.Version || !h.filter.Resource(after.GroupResource()) {
		return nil
	}
	h.log.Info("another version of a resource is served", "before", before.String(), "after", after.String())
	return h.start(ctx, after, "")
}

// Removed implements kube.Handler.
func (h *handler) Removed(ctx context.Context, resource kube.Resource, at string) error {
	h.documents.Changed()
	h.opened(resource.GroupResource(), nil) // and need not be
	delete(h.asking, resource.GroupResource())
	s := h.openStream(resource)
	if s == nil || s.current() == nil {
		return h.unserved(ctx, resource, at)
	}
	h.log.Info("resource is no longer served", "resource", resource.String())
	h.retire(ctx, s, s.current(), resource, at)
	return nil
}

// start opens and launches a stream, or one that is open in another version. What another try would not change ends the
// recorder: it must not look alive and record nothing. What concerns this stream alone ends nothing else.
func (h *handler) start(ctx context.Context, resource kube.Resource, since string) error {
	err := h.open(ctx, resource, since)
	h.opened(resource.GroupResource(), err)
	if err != nil && ctx.Err() == nil && endsAll(postgres.ClassOf(err)) {
		h.failed = err
		h.giveUp(err)
	}
	return err
}

// endsAll reports whether an error of one stream will meet every other.
func endsAll(class postgres.Class) bool { return !class.Transient() && class != postgres.Rejected }

func (h *handler) open(ctx context.Context, resource kube.Resource, since string) error {
	first, since, err := h.first(ctx, resource, since)
	if err != nil {
		return err
	}
	s, opened, err := h.streamOf(ctx, resource, since)
	if err != nil {
		return err
	}
	s.ending.stop() // ended is its until then
	if first {
		since = "" // The stream is registered with it.
	}
	d, err := h.decide(ctx, s, resource, since)
	if err != nil {
		return err
	}
	if !opened {
		if _, err := h.register(ctx, resource, s.rules, ""); err != nil {
			return err
		}
	}
	delete(h.asking, resource.GroupResource())
	h.launch(ctx, s, resource, d)
	return nil
}

// first reports whether a resource that was defined at a resource version was never on record. Its stream is registered as
// complete from there, or from nowhere if something may have outlived an earlier definition.
func (h *handler) first(ctx context.Context, resource kube.Resource, since string) (first bool, from string, err error) {
	if since == "" || h.openStream(resource) != nil {
		return false, since, nil
	}
	// At first: the database may be away for longer than etcd remembers.
	objects, unknown := h.objects(ctx, resource, since)
	registered, err := h.sink.Prior().Registered(ctx, resource.Group, resource.Name)
	switch {
	case err != nil || registered:
		return false, since, err
	case unknown != nil:
		return false, "", unknown
	}
	d := lifecycle.Decide(lifecycle.Facts{Served: true, New: true, Begins: since, Vacant: true, Objects: objects})
	if d.Do == lifecycle.List {
		h.log.Warn(mayBeLeft, "resource", resource.String(), "resource_version", since)
	}
	return true, d.At, nil
}
