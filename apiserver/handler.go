package apiserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kuberewind/kuberewind/apiserver/internal/wire"
	"github.com/kuberewind/kuberewind/history"
)

// Options of a Handler.
type Options struct {
	Record     *history.Record // stays open as long as the Handler is used
	Log        *slog.Logger
	CacheBytes int64 // of rebuilt states that are kept; 0 means 512 MiB
	MaxWatches int   // open at one time, beyond which they get 429; 0 means 1,000
}

// SeqHeader names the seq of which an answer is.
const SeqHeader = "Kuberewind-Seq"

// A Handler serves a record. It is safe for concurrent use.
type Handler struct {
	cluster *cluster
	log     *slog.Logger
}

// New makes a Handler. Close lets go of what it holds.
func New(o Options) (*Handler, error) {
	if o.Record == nil {
		return nil, errors.New("apiserver: there is no record")
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	c, err := newCluster(o)
	if err != nil {
		return nil, err
	}
	return &Handler{cluster: c, log: o.Log}, nil
}

// Close ends what is being rebuilt.
func (h *Handler) Close() { h.cluster.close() }

// Path is the root of the API at a point: of a point by time or by resource version, at its seq.
func (h *Handler) Path(at history.Point) string {
	return rootPath(h.cluster.record.Cluster().UID, at.Seq)
}

func rootPath(uid string, seq int64) string { return fmt.Sprintf("/clusters/%s/at/seq:%d", uid, seq) }

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	at, path, err := h.cluster.root(r)
	if err == nil {
		w.Header().Set(SeqHeader, strconv.FormatInt(at.point.Seq, 10))
		err = at.serve(w, within(r, path))
	}
	if err != nil && r.Context().Err() == nil {
		if wire.Status(err).Code >= http.StatusInternalServerError {
			h.log.ErrorContext(r.Context(), "a request failed", "path", r.URL.Path, "error", err)
		}
		wire.Error(w, err)
	}
}

// within is the request as it would be without the prefix of the instant.
func within(r *http.Request, path string) *http.Request {
	inner := r.Clone(r.Context())
	inner.URL.Path, inner.URL.RawPath = path, ""
	return inner
}

// root finds the cluster and the instant that a URL names, and the path within.
func (c *cluster) root(r *http.Request) (*instant, string, error) {
	if strings.Contains(strings.ToLower(r.URL.EscapedPath()), "%2f") {
		return nil, "", apierrors.NewBadRequest("a name in the path has a slash: no object has such a name")
	}
	rest, ok := strings.CutPrefix(r.URL.Path, "/clusters/")
	if !ok {
		return nil, "", unknownPath("the path begins with /clusters/<UID>/at/seq:<N>: \"replay kubeconfig\" writes a kubeconfig that has it")
	}
	uid, rest, _ := strings.Cut(rest, "/")
	if known := c.record.Cluster(); uid != known.UID {
		return nil, "", unknownPath(fmt.Sprintf("no cluster with UID %q is served here: the record is that of %s", cut(uid), known.UID))
	}
	kind, rest, _ := strings.Cut(rest, "/")
	if kind != "at" {
		return nil, "", unknownPath(fmt.Sprintf("/clusters/%s/%s is not served: use /clusters/%s/at/seq:<N>", uid, cut(kind), uid))
	}
	text, path, _ := strings.Cut(rest, "/")
	seq, err := c.seq(r.Context(), text)
	if err != nil {
		return nil, "", err
	}
	at, err := c.instant(r.Context(), seq)
	return at, "/" + path, err
}

// seq reads the instant of a URL.
func (c *cluster) seq(ctx context.Context, text string) (int64, error) {
	number, ok := strings.CutPrefix(text, "seq:")
	seq, err := strconv.ParseInt(number, 10, 64)
	if ok && err == nil && seq > 0 && strconv.FormatInt(seq, 10) == number {
		return seq, nil
	}
	return 0, apierrors.NewBadRequest(fmt.Sprintf("%q is no instant of a URL, which is seq:<N>%s", cut(text), c.canonical(ctx, text)))
}

// canonical adds the seq that somebody may have meant.
func (c *cluster) canonical(ctx context.Context, text string) string {
	at, err := history.ParseInstant(strings.ReplaceAll(text, "seq:+", "seq:"))
	if err != nil {
		return ""
	}
	p, err := c.record.Resolve(ctx, at, history.Scope{})
	if err != nil {
		return ""
	}
	return fmt.Sprintf(": that instant is %s now", rootPath(c.record.Cluster().UID, p.Seq))
}

func unknownPath(message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound, Message: message,
	}}
}

// cut shortens what a client sent, for a message.
func cut(text string) string {
	const most = 60
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}
