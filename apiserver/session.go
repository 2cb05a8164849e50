package apiserver

import (
	"context"
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kuberewind/kuberewind/apiserver/internal/session"
)

// LiveSession is the name of the session at the end of the record, which always exists.
const LiveSession = session.Live

// SessionsPath is the path where clients read, make, move and end sessions, as JSON.
const SessionsPath = session.Prefix

// A Session is the JSON answer to a request for a session.
type Session = session.State

// A SessionList is the JSON answer to a request for all sessions.
type SessionList = session.List

// A SessionChange is the JSON body of a request that makes or moves a session.
type SessionChange = session.Change

// SessionPath returns the root of the API of a cluster that follows a session.
func SessionPath(uid, name string) string { return session.Path(uid, name) }

// everyone is the key of the sessions that all callers share.
const everyone = ""

// newSessions makes the session registries. If live clusters decide who may read, each cluster has its own registry, which
// only its own users see: two clusters can have two users with the same name.
func (h *Handler) newSessions() map[string]*session.Registry {
	clusters := map[string]session.Cluster{}
	sessions := map[string]*session.Registry{}
	for uid, c := range h.clusters {
		clusters[uid] = session.Cluster{Record: c.record, Timeline: c.record.Timeline(), NewRoot: func() session.Root { return sessionFeed{c.newMoving(false)} }}
		if h.access.Authorize != nil {
			sessions[uid] = session.New(map[string]session.Cluster{uid: clusters[uid]}, h.log)
		}
	}
	if h.access.Authorize == nil {
		sessions[everyone] = session.New(clusters, h.log)
	}
	return sessions
}

// sessionsOf returns the sessions of a cluster.
func (h *Handler) sessionsOf(uid string) *session.Registry {
	if h.access.Authorize == nil {
		uid = everyone
	}
	return h.sessions[uid]
}

// serveSessions answers requests about the sessions that the caller may see.
func (h *Handler) serveSessions(w http.ResponseWriter, r *http.Request) error {
	uid := everyone
	if h.access.Authorize != nil && h.access.Cluster != nil {
		uid = h.access.Cluster(r.Context())
	}
	sessions := h.sessionsOf(uid)
	if sessions == nil {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "sessions"}, "", errors.New("no cluster knows the caller"))
	}
	return sessions.ServeAPI(w, r)
}

// A sessionRoot is the root of the session in a URL.
type sessionRoot struct {
	sessions      *session.Registry
	cluster, name string
}

func (s *sessionRoot) serve(w http.ResponseWriter, r *http.Request) error {
	return s.sessions.Serve(w, r, s.cluster, s.name)
}

// A sessionFeed is the root that a session moves.
type sessionFeed struct{ *moving }

func (s sessionFeed) Serve(w http.ResponseWriter, r *http.Request) error { return s.serve(w, r) }
func (s sessionFeed) Jump(to, ends int64)                                { s.feed.SeekTo(to, ends) }
func (s sessionFeed) Advance(ctx context.Context, to, ends int64) error {
	return s.feed.Advance(ctx, to, ends)
}
func (s sessionFeed) Seq() int64 { return s.feed.Seq() }
func (s sessionFeed) Open() int  { return s.open() }
func (s sessionFeed) Close()     { s.feed.Close() }
