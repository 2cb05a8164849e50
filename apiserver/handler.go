package apiserver

import (
	"errors"
	"log/slog"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kuberewind/kuberewind/apiserver/internal/session"
	"github.com/kuberewind/kuberewind/apiserver/internal/wire"
	"github.com/kuberewind/kuberewind/history"
)

// Options of a Handler.
type Options struct {
	Records    []*history.Record // one for each cluster; they must stay open while the Handler is used
	Log        *slog.Logger
	CacheBytes int64 // bound of a cluster's cached rebuilt states; 0 means 512 MiB
	MaxWatches int   // of a cluster at one time; further watches get 429; 0 means 1,000
	Access     Access

	// Intentions receives each write before the Handler refuses it. It may be nil. If it fails, the client gets its error
	// with 503.
	Intentions func(Intention) error
}

// DefaultMaxWatches is the default of Options.MaxWatches.
const DefaultMaxWatches = 1000

// SeqHeader has the seq of an answer.
const SeqHeader = "Kuberewind-Seq"

// A Handler serves the records of clusters. It is safe for concurrent use.
type Handler struct {
	clusters map[string]*cluster // by UID
	access   Access
	sessions map[string]*session.Registry // by the UID of the cluster whose users see them
	log      *slog.Logger
}

// New makes a Handler. Close ends its sessions and its running rebuilds.
func New(o Options) (*Handler, error) {
	if len(o.Records) == 0 {
		return nil, errors.New("apiserver: there is no record")
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	h := &Handler{clusters: map[string]*cluster{}, log: o.Log, access: o.Access}
	for _, record := range o.Records {
		c, err := newCluster(record, o)
		if err != nil {
			return nil, err
		}
		h.clusters[record.Cluster().UID] = c
	}
	h.sessions = h.newSessions()
	return h, nil
}

// Close ends the sessions, the watches of live and the running rebuilds.
func (h *Handler) Close() {
	for _, sessions := range h.sessions {
		sessions.Close()
	}
	for _, c := range h.clusters {
		c.close()
	}
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	err := h.serve(w, r)
	if err != nil && r.Context().Err() == nil {
		if wire.Status(err).Code >= http.StatusInternalServerError {
			h.log.ErrorContext(r.Context(), "a request failed", "path", r.URL.Path, "error", err)
		}
		wire.Error(w, err)
	}
}

// serve answers a request. If it returns an error, that error is the answer.
func (h *Handler) serve(w http.ResponseWriter, r *http.Request) error {
	if session.Handles(r.URL.Path) {
		return h.serveSessions(w, r)
	}
	at, path, err := h.root(r)
	if err != nil {
		return err
	}
	return at.serve(w, within(r, path))
}

// within returns the request without the path prefix of the instant.
func within(r *http.Request, path string) *http.Request {
	inner := r.Clone(r.Context())
	inner.URL.Path, inner.URL.RawPath = path, ""
	return inner
}

func unknownPath(message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound, Message: message,
	}}
}

// cut shortens a client's text for a message.
func cut(text string) string { return shorten(text, 60) }

func shorten(text string, most int) string {
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}
