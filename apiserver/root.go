package apiserver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kuberewind/kuberewind/history"
)

// Path returns the root of the API of a cluster at a seq.
func Path(uid string, seq int64) string { return fmt.Sprintf("/clusters/%s/at/seq:%d", uid, seq) }

// LivePath returns the root of the API of a cluster at the end of its record.
func LivePath(uid string) string { return fmt.Sprintf("/clusters/%s/session/%s", uid, liveName) }

// A root is a whole API. It answers a request whose path has no prefix. If serve returns an error, that error is the
// answer.
type root interface {
	serve(w http.ResponseWriter, r *http.Request) error
}

// root finds the root of a URL, and the path within it.
func (h *Handler) root(r *http.Request) (root, string, error) {
	if strings.Contains(strings.ToLower(r.URL.EscapedPath()), "%2f") {
		return nil, "", apierrors.NewBadRequest("a name in the path has a slash: no object has such a name")
	}
	if !utf8.ValidString(r.URL.Path) || strings.Contains(r.URL.Path, "\x00") {
		return nil, "", apierrors.NewBadRequest("the path is no UTF-8, or has a NUL: no object has such a name")
	}
	rest, ok := strings.CutPrefix(r.URL.Path, "/clusters/")
	if !ok {
		return nil, "", unknownPath("the path must begin with /clusters/<UID>/at/seq:<N>; \"replay kubeconfig\" writes a kubeconfig with such a path")
	}
	uid, rest, _ := strings.Cut(rest, "/")
	c := h.clusters[uid]
	if c == nil {
		return nil, "", unknownPath(fmt.Sprintf("no cluster with UID %q is served here; use one of %s", cut(uid), strings.Join(slices.Sorted(maps.Keys(h.clusters)), ", ")))
	}
	if inner, ok := strings.CutPrefix(rest, shiftedName+"/"); ok {
		found, path, err := h.rootOf(r, c, inner)
		return shiftedRoot{found}, path, err
	}
	return h.rootOf(r, c, rest)
}

// rootOf finds a root of one cluster, and the path within it.
func (h *Handler) rootOf(r *http.Request, c *cluster, rest string) (root, string, error) {
	uid := c.record.Cluster().UID
	kind, rest, _ := strings.Cut(rest, "/")
	text, path, _ := strings.Cut(rest, "/")
	switch {
	case kind == "session" && text == liveName:
		return c.live(), "/" + path, nil
	case kind == "session" && text != "":
		return &sessionRoot{sessions: h.sessionsOf(uid), cluster: uid, name: text}, "/" + path, nil
	case kind != "at":
		return nil, "", unknownPath(fmt.Sprintf("/clusters/%s/%s is not served: use /clusters/%s/at/seq:<N>, %s or %s", uid, cut(kind), uid, LivePath(uid), SessionPath(uid, "<NAME>")))
	}
	seq, err := c.seq(r.Context(), text)
	if err != nil {
		return nil, "", err
	}
	at, err := c.instant(r.Context(), seq)
	return at, "/" + path, err
}

// seq parses the instant of a URL.
func (c *cluster) seq(ctx context.Context, text string) (int64, error) {
	number, ok := strings.CutPrefix(text, "seq:")
	seq, err := strconv.ParseInt(number, 10, 64)
	if ok && err == nil && seq > 0 && strconv.FormatInt(seq, 10) == number {
		return seq, nil
	}
	refusal := apierrors.NewBadRequest(fmt.Sprintf("%q is not a valid instant in a URL; use seq:<N>", cut(text)))
	p, err := c.canonical(ctx, text)
	switch {
	case errors.Is(err, history.ErrBeforeRecord):
		refusal.ErrStatus.Message += ": " + err.Error()
	case err == nil:
		path := Path(c.record.Cluster().UID, p.Seq)
		refusal.ErrStatus.Message += fmt.Sprintf(": that instant is %s now", path)
		refusal.ErrStatus.Details = &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: CauseInstant, Message: path, Field: p.Time.UTC().Format(time.RFC3339)}}}
	}
	return 0, refusal
}

// CauseInstant is the type of a cause in the refusal of an instant. The cause's message is the root of the instant that the
// client probably meant. Its field is the time.
const CauseInstant metav1.CauseType = "Instant"

// canonical finds the seq that the client probably meant.
func (c *cluster) canonical(ctx context.Context, text string) (p history.Point, err error) {
	at, err := history.ParseInstant(strings.ReplaceAll(text, "seq:+", "seq:"))
	if err != nil {
		return p, err
	}
	return c.record.Resolve(ctx, at, history.Scope{})
}
