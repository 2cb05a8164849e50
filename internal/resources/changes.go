package resources

import (
	"context"

	"github.com/kuberewind/kuberewind/internal/lifecycle"
	"github.com/kuberewind/kuberewind/kube"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// Added implements kube.Handler.
func (h *Handler) Added(ctx context.Context, resource kube.Resource, since string) error {
	h.options.Documents.Changed()
	h.options.Schemas.Defined(resource)
	if !h.options.Rules.Resource(resource.GroupResource()) {
		h.log.Debug("the filter excludes a resource", "resource", resource.String())
		return nil
	}
	return h.start(ctx, resource, since)
}

// Changed implements kube.Handler. The stream resumes from its position, in the new version.
func (h *Handler) Changed(ctx context.Context, before, after kube.Resource) error {
	h.options.Documents.Changed()
	h.options.Schemas.Defined(after)
	if before.Version == after.Version || !h.options.Rules.Resource(after.GroupResource()) {
		return nil
	}
	h.log.Info("another version of a resource is served", "before", before.String(), "after", after.String())
	return h.start(ctx, after, "")
}

// Removed implements kube.Handler.
func (h *Handler) Removed(ctx context.Context, resource kube.Resource, at string) error {
	h.options.Documents.Changed()
	h.options.Opened(resource.GroupResource(), nil) // it need not be opened any more
	delete(h.asking, resource.GroupResource())
	s := h.options.Streams.Get(resource)
	if s == nil || s.Current() == nil {
		return h.unserved(ctx, resource, at)
	}
	h.log.Info("resource is no longer served", "resource", resource.String())
	h.retire(ctx, s, s.Current(), resource, at)
	return nil
}

// start opens a stream and launches it. If the stream is open already, start launches it in another version. If the error will not go away
// by a retry and would meet every stream, start ends the recorder, so that it does not look alive while it records nothing. An error of
// this stream alone does not end the recorder.
func (h *Handler) start(ctx context.Context, resource kube.Resource, since string) error {
	err := h.open(ctx, resource, since)
	h.options.Opened(resource.GroupResource(), err)
	if err != nil && ctx.Err() == nil && endsAll(postgres.ClassOf(err)) {
		h.failed = err
		h.options.GiveUp(err)
	}
	return err
}

// endsAll reports whether an error of one stream would meet every other stream, too.
func endsAll(class postgres.Class) bool { return !class.Transient() && class != postgres.Rejected }

func (h *Handler) open(ctx context.Context, resource kube.Resource, since string) error {
	first, since, err := h.first(ctx, resource, since)
	if err != nil {
		return err
	}
	s, opened, err := h.options.Streams.Open(ctx, resource, since)
	if err != nil {
		return err
	}
	h.endings[resource.GroupResource()].stop() // until then the ending owns the stream
	if first {
		since = "" // Open has registered the stream with it.
	}
	d, err := h.decide(ctx, s, resource, since)
	if err != nil {
		return err
	}
	if !opened {
		if _, err := h.options.Streams.Register(ctx, resource, ""); err != nil {
			return err
		}
	}
	delete(h.asking, resource.GroupResource())
	h.options.Launcher.Launch(ctx, s, resource, d)
	return nil
}

// first reports whether a resource that was defined at a resource version was never on record. From is the resource version from which its
// stream is registered as complete. It is empty if objects of an earlier definition may still exist.
func (h *Handler) first(ctx context.Context, resource kube.Resource, since string) (first bool, from string, err error) {
	if since == "" || h.options.Streams.Get(resource) != nil {
		return false, since, nil
	}
	// Ask the server first: the database may be away until etcd has compacted the revision.
	objects, unknown := h.objects(ctx, resource, since)
	registered, err := h.options.Prior.Registered(ctx, resource.Group, resource.Name)
	switch {
	case err != nil || registered:
		return false, since, err
	case unknown != nil:
		return false, "", unknown
	}
	d := lifecycle.Decide(lifecycle.Facts{Served: true, New: true, Begins: since, Vacant: true, Objects: objects})
	if d.Do == lifecycle.List {
		h.log.Warn(mayOutlive, "resource", resource.String(), "resource_version", since)
	}
	return true, d.At, nil
}
