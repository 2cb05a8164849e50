package timeline

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/timeline/internal/about"
	"github.com/kuberewind/kuberewind/timeline/internal/ask"
	"github.com/kuberewind/kuberewind/timeline/internal/marks"
	"github.com/kuberewind/kuberewind/timeline/internal/troubles"
)

// Root is the path prefix that a Handler serves.
const Root = "/timeline/v1/"

// DefaultPatience is the default of Options.Patience. With it, the first slice is ready within 300 ms.
const DefaultPatience = 200 * time.Millisecond

// Options are the options of a Handler.
type Options struct {
	Clusters []Cluster
	Log      *slog.Logger // nil discards all messages
	// Patience is how long a count may take before the answer holds only a part of it; 0 means DefaultPatience.
	Patience time.Duration
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// A Cluster is a cluster whose record the Handler serves. The record must stay open as long as the Handler is used.
type Cluster struct {
	UID, Name string
	Record    *history.Record
}

// A Handler answers the page's requests. It is safe for concurrent use.
type Handler struct {
	clusters []*cluster
	log      *slog.Logger
	patience time.Duration
	now      func() time.Time
	shapes   map[string]shape
}

// A cluster is the state of one served cluster.
type cluster struct {
	Cluster
	reader   *marks.Reader
	troubles *troubles.Kept
}

// A shape is one kind of request.
type shape struct {
	known  []string // its parameters, in addition to the cluster
	answer func(context.Context, *cluster, ask.Values) (any, error)
}

// New returns a Handler.
func New(o Options) *Handler {
	h := &Handler{log: o.Log, patience: o.Patience, now: o.Now}
	if h.log == nil {
		h.log = slog.New(slog.DiscardHandler)
	}
	if h.patience == 0 {
		h.patience = DefaultPatience
	}
	if h.now == nil {
		h.now = time.Now
	}
	for _, c := range o.Clusters {
		h.clusters = append(h.clusters, &cluster{Cluster: c, reader: marks.NewReader(c.Record), troubles: new(troubles.Kept)})
	}
	h.shapes = h.all()
	return h
}

// Close does nothing: a Handler starts no goroutines, and requests end with their contexts.
func (h *Handler) Close() {}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer, err := h.serve(r)
	switch {
	case err == nil:
		write(w, r, http.StatusOK, answer)
	case r.Context().Err() == nil:
		status := statusOf(err)
		if status.Code >= http.StatusInternalServerError {
			h.log.ErrorContext(r.Context(), "a request of the timeline failed", "path", r.URL.Path, "error", err)
		}
		write(w, r, int(status.Code), status)
	}
}

func (h *Handler) serve(r *http.Request) (any, error) {
	name, ok := strings.CutPrefix(r.URL.Path, Root)
	s, known := h.shapes[name]
	switch {
	case !ok || !known:
		return nil, ask.NotFound("the timeline has no %s: this server may be older than the page", ask.Cut(r.URL.Path))
	case r.Method != http.MethodGet:
		return nil, apierrors.NewMethodNotSupported(schema.GroupResource{Resource: "timeline"}, r.Method)
	}
	values, err := ask.Read(r.URL.RawQuery, append([]string{"cluster"}, s.known...))
	if err != nil {
		return nil, err
	}
	if name == "meta" && values.Text("cluster") == "" && len(h.clusters) > 1 {
		return about.Choice{Clusters: h.names()}, nil
	}
	c, err := h.cluster(values.Text("cluster"))
	if err != nil {
		return nil, err
	}
	return s.answer(r.Context(), c, values)
}

// cluster returns a cluster by its UID. Without a UID it returns the only cluster.
func (h *Handler) cluster(uid string) (*cluster, error) {
	var names []string
	for _, c := range h.clusters {
		if c.UID == uid || uid == "" && len(h.clusters) == 1 {
			return c, nil
		}
		names = append(names, c.UID)
	}
	if uid == "" {
		return nil, ask.Bad("several clusters are served: give cluster=UID, one of %s", strings.Join(names, ", "))
	}
	return nil, ask.NotFound("cluster=%s is not served: use one of %s", ask.Cut(uid), strings.Join(names, ", "))
}

func (h *Handler) meta(ctx context.Context, c *cluster, _ ask.Values) (any, error) {
	m, err := about.Record(ctx, c.Record)
	if err != nil {
		return nil, err
	}
	m.Clusters = h.names()
	return m, nil
}

func (h *Handler) names() (all []about.Cluster) {
	for _, each := range h.clusters {
		all = append(all, about.Cluster{UID: each.UID, Name: each.Name})
	}
	return all
}
