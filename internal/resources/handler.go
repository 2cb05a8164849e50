package resources

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kuberewind/kuberewind/internal/filter"
	"github.com/kuberewind/kuberewind/internal/stream"
	"github.com/kuberewind/kuberewind/kube"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

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

// waiting is the time since when a resource, under one definition, has waited for a fact.
type waiting struct {
	under types.UID
	since time.Time
}

// over reports whether the wait has lasted for the patience. The wait begins with the first call for a definition.
func (w *waiting) over(under types.UID, patience time.Duration) bool {
	if w.under != under || w.since.IsZero() {
		*w = waiting{under, time.Now()}
	}
	return time.Since(w.since) >= patience
}

// asking holds the state of the question, under one definition.
type asking struct {
	refused, asked waiting
	// answeredAt is the resource version of the answer, and outlived is the answer. The answer stays valid until the stream is launched: while
	// the database is away, the Handler must not ask again, because etcd may compact the revision.
	answeredAt string
	outlived   bool
}

// ending records the end of a stream. It waits for the last deletions, and for the entries of the stream on disk.
type ending struct {
	cancel context.CancelFunc
	done   chan struct{}
}
