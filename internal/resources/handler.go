package resources

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kuberewind/kuberewind/internal/filter"
	"github.com/kuberewind/kuberewind/internal/lifecycle"
	"github.com/kuberewind/kuberewind/internal/stream"
	"github.com/kuberewind/kuberewind/kube"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// retireAfter is how long a stream may take to end by itself after its resource is no longer served. Its last deletions may still arrive.
const retireAfter = time.Minute

// Options are the parts that a Handler uses.
type Options struct {
	Streams  *stream.Set
	Launcher *stream.Launcher
	Prior    *postgres.Prior
	Client   *kube.Client
	Rules    *filter.Filter
	// Definitions is the resource version up to which earlier recorders recorded CustomResourceDefinitions.
	Definitions string
	Documents   interface{ Changed() }
	Schemas     interface{ Defined(kube.Resource) }
	// Opened is called after each attempt to open the stream of a resource. The error is nil if it was opened.
	Opened func(schema.GroupResource, error)
	// GiveUp ends the recorder.
	GiveUp context.CancelCauseFunc
	Log    *slog.Logger
}

// Handler starts and stops streams as resources come and go. Its callers call it from one goroutine, which owns all fields except those that
// name another owner.
type Handler struct {
	options Options
	log     *slog.Logger
	failed  error // why GiveUp was called
	// asking holds the resources that wait for an answer of the server: do objects of an earlier definition still exist?
	asking map[schema.GroupResource]*asking
	// waits holds the resources that wait for the record of definitions.
	waits map[schema.GroupResource]*waiting
	// endings holds the endings that run or have run. A running ending owns the parts of the stream that it uses.
	endings     map[schema.GroupResource]*ending
	retirements sync.WaitGroup // counts the goroutines of all endings
}

// NewHandler returns a Handler that has started no stream.
func NewHandler(o Options) *Handler {
	return &Handler{
		options: o, log: o.Log,
		asking: map[schema.GroupResource]*asking{}, waits: map[schema.GroupResource]*waiting{}, endings: map[schema.GroupResource]*ending{},
	}
}

// Wait waits until all endings have ended. It returns the error with which GiveUp was called. Call it after the last call of the Handler,
// and after the context of these calls has ended.
func (h *Handler) Wait() error {
	h.retirements.Wait()
	return h.failed
}

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
