package apiserver

import (
	"context"
	"net/http"

	"github.com/kuberewind/kuberewind/apiserver/internal/session"
)

// LiveSession is the name of the session that is always there, at the end of the record.
const LiveSession = session.Live

// SessionsPath is where sessions are read, made, moved and ended, as JSON.
const SessionsPath = session.Prefix

// A Session is the JSON answer to who asks for a session.
type Session = session.State

// A SessionList is the JSON answer to who asks for all.
type SessionList = session.List

// A SessionChange is the JSON body by which a session is made or moved.
type SessionChange = session.Change

// SessionPath is the root of the API of a cluster that follows a session.
func SessionPath(uid, name string) string { return session.Path(uid, name) }

// newSessions makes the sessions of the clusters.
func (h *Handler) newSessions() *session.Registry {
	clusters := map[string]session.Cluster{}
	for uid, c := range h.clusters {
		clusters[uid] = session.Cluster{Record: c.record, NewRoot: func() session.Root { return sessionFeed{c.newMoving(false)} }}
	}
	return session.New(clusters, h.log)
}

// A sessionRoot is the root of a session that a URL names.
type sessionRoot struct {
	sessions      *session.Registry
	cluster, name string
}

func (s *sessionRoot) serve(w http.ResponseWriter, r *http.Request) error {
	return s.sessions.Serve(w, r, s.cluster, s.name)
}

// A sessionFeed is what a session moves.
type sessionFeed struct{ *moving }

func (s sessionFeed) Serve(w http.ResponseWriter, r *http.Request) error { return s.serve(w, r) }
func (s sessionFeed) Jump(to int64)                                      { s.feed.SeekTo(to) }
func (s sessionFeed) Advance(ctx context.Context, to int64) error        { return s.feed.Advance(ctx, to) }
func (s sessionFeed) Seq() int64                                         { return s.feed.Seq() }
func (s sessionFeed) Open() int                                          { return s.open() }
func (s sessionFeed) Close()                                             { s.feed.Close() }
