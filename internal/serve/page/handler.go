package page

import (
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kuberewind/kuberewind/internal/jsonbody"
	"github.com/kuberewind/kuberewind/internal/serve"
)

// A part selects the handler of a path.
type part int

const (
	bundle   part = iota // HTML, script and style, without a token
	exchange             // exchanges a code for a token
	timeline
	sessions
	unknown // an unknown path below a path of data or codes
)

func (p part) hasData() bool { return p == timeline || p == sessions || p == unknown }

// Paths of data.
const (
	timelinePath = "/timeline"
	sessionPath  = "/session"
	sessionsPath = sessionPath + "/v1"
)

// partOf decides by the path as the client sent it. If a path is not clearly part of the page, it needs a token.
func partOf(path string) part {
	switch {
	case path == exchangePath:
		return exchange
	case under(path, timelinePath):
		return timeline
	case under(path, sessionsPath):
		return sessions
	case under(path, sessionPath), under(path, codePath):
		return unknown
	}
	return bundle
}

func under(path, root string) bool {
	rest, ok := strings.CutPrefix(path, root)
	return ok && (rest == "" || rest[0] == '/')
}

// A handler routes requests.
type handler struct {
	door      *door
	codes     *Codes // nil with live authorization, where there are no codes
	web       http.Handler
	timelines map[string]http.Handler // by the UID of the cluster whose users may read them, or ""
	sessions  http.Handler
}

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	next, err := h.find(w, r)
	if err != nil {
		serve.WriteError(w, err)
		return
	}
	next(w, r)
}

// find returns the handler of a request. If it returns an error, that error is the answer.
func (h *handler) find(w http.ResponseWriter, r *http.Request) (http.HandlerFunc, error) {
	p := partOf(r.URL.Path)
	if p.hasData() {
		return h.data(w, r, p)
	}
	switch {
	case p == exchange && h.codes == nil:
		return nil, notFound("there are no codes here: send the bearer token that you use for the live cluster")
	case p == exchange:
		return h.codes.exchange, nil
	case !reads(r):
		return nil, jsonbody.NotAllowed(w, r, schema.GroupResource{}, "GET, HEAD")
	}
	return h.web.ServeHTTP, nil
}

// data first decides who may read. A client that may not read learns nothing else, not even which paths exist.
func (h *handler) data(w http.ResponseWriter, r *http.Request, p part) (http.HandlerFunc, error) {
	uid, err := h.door.allow(r)
	switch {
	case err != nil:
		return nil, err
	case p == sessions:
		return confined(uid, h.sessions), nil
	case p == timeline && !reads(r): // I10
		return nil, jsonbody.NotAllowed(w, r, schema.GroupResource{}, "GET, HEAD")
	case p == timeline && h.timelines[uid] != nil:
		return confined(uid, h.timelines[uid]), nil
	}
	return nil, notFound("there is nothing at this path")
}

func reads(r *http.Request) bool { return r.Method == http.MethodGet || r.Method == http.MethodHead }

// confined sets the query's cluster to the one whose live API decided.
func confined(uid string, next http.Handler) http.HandlerFunc {
	if uid == everyone {
		return next.ServeHTTP
	}
	return func(w http.ResponseWriter, r *http.Request) {
		r = r.Clone(r.Context())
		query := r.URL.Query()
		query.Set("cluster", uid)
		r.URL.RawQuery = query.Encode()
		next.ServeHTTP(w, r)
	}
}

func notFound(message string) error {
	err := apierrors.NewNotFound(schema.GroupResource{}, "")
	err.ErrStatus.Message = message
	return err
}
