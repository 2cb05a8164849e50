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

// retireAfter is how long a stream whose resource is no longer served may take to end by itself. Its last deletions may still
// be on their way.
const retireAfter = time.Minute

// Options say what a Handler works with.
type Options struct {
	Streams  *stream.Set
	Launcher *stream.Launcher
	Prior    *postgres.Prior
	Client   *kube.Client
	Rules    *filter.Filter
	// Definitions is the resource version up to which CustomResourceDefinitions were recorded when this recorder began.
	Definitions string
	Documents   interface{ Changed() }
	Schemas     interface{ Defined(kube.Resource) }
	// Opened is told that the stream of a resource was opened, or why not.
	Opened func(schema.GroupResource, error)
	// GiveUp ends the recorder.
	GiveUp context.CancelCauseFunc
	Log    *slog.Logger
}

// Handler starts and stops streams as resources come and go. Its calls come one at a time, and what is not said to be another's belongs
// to their goroutine.
type Handler struct {
	options Options
	log     *slog.Logger
	failed  error // why GiveUp was called
	// asking are the resources that are to be followed once it is known whether objects have outlived a definition.
	asking map[schema.GroupResource]*asking
	// waits are the resources that wait for the record of definitions.
	waits map[schema.GroupResource]*waiting
	// endings are under way, or were. What an ending works on of its stream belongs to it until it has stopped.
	endings     map[schema.GroupResource]*ending
	retirements sync.WaitGroup // of the goroutines of all endings
}

// NewHandler has started no stream.
func NewHandler(o Options) *Handler {
	return &Handler{
		options: o, log: o.Log,
		asking: map[schema.GroupResource]*asking{}, waits: map[schema.GroupResource]*waiting{}, endings: map[schema.GroupResource]*ending{},
	}
}

// Wait returns when all endings have, and gives why the recorder was ended. It comes after the last call, and after their context has ended.
func (h *Handler) Wait() error {
	h.retirements.Wait()
	return h.failed
}

// Added implements kube.Handler.
func (h *Handler) Added(ctx context.Context, resource kube.Resource, since string) error {
	h.options.Documents.Changed()
	h.options.Schemas.Defined(resource)
	if !h.options.Rules.Resource(resource.GroupResource()) {
		h.log.Debug("resource left out by the filter", "resource", resource.String())
		return nil
	}
	return h.start(ctx, resource, since)
}

// Changed implements kube.Handler: the stream goes on in the new version where it was.
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
	h.options.Opened(resource.GroupResource(), nil) // and need not be
	delete(h.asking, resource.GroupResource())
	s := h.options.Streams.Get(resource)
	if s == nil || s.Current() == nil {
		return h.unserved(ctx, resource, at)
	}
	h.log.Info("resource is no longer served", "resource", resource.String())
	h.retire(ctx, s, s.Current(), resource, at)
	return nil
}

// start opens and launches a stream, or one that is open in another version. What another try would not change ends the
// recorder: it must not look alive and record nothing. What concerns this stream alone ends nothing else.
func (h *Handler) start(ctx context.Context, resource kube.Resource, since string) error {
	err := h.open(ctx, resource, since)
	h.options.Opened(resource.GroupResource(), err)
	if err != nil && ctx.Err() == nil && endsAll(postgres.ClassOf(err)) {
		h.failed = err
		h.options.GiveUp(err)
	}
	return err
}

// endsAll reports whether an error of one stream will meet every other.
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
	h.endings[resource.GroupResource()].stop() // the stream is its until then
	if first {
		since = "" // The stream is registered with it.
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

// first reports whether a resource that was defined at a resource version was never on record. Its stream is registered as
// complete from there, or from nowhere if something may have outlived an earlier definition.
func (h *Handler) first(ctx context.Context, resource kube.Resource, since string) (first bool, from string, err error) {
	if since == "" || h.options.Streams.Get(resource) != nil {
		return false, since, nil
	}
	// At first: the database may be away for longer than etcd remembers.
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
		h.log.Warn(mayBeLeft, "resource", resource.String(), "resource_version", since)
	}
	return true, d.At, nil
}
