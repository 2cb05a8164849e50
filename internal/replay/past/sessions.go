package past

import (
	"context"
	"net/http"
	"net/url"

	"k8s.io/client-go/rest"

	"github.com/kuberewind/kuberewind/apiserver"
	"github.com/kuberewind/kuberewind/internal/serve"
)

// Sessions is a client for the sessions of a cluster. Its errors are the server's.
type Sessions struct {
	Cluster string // the UID
	client  *client
}

// NewSessions returns a client of a server. Close closes it.
func NewSessions(access *serve.Access, cluster string) (*Sessions, error) {
	return newSessions(configOf(access), access.URL, cluster)
}

func newSessions(config *rest.Config, origin, cluster string) (*Sessions, error) {
	c, err := newClient(config, origin, "its sessions", answersWithin)
	return &Sessions{Cluster: cluster, client: c}, err
}

// Close closes idle connections.
func (s *Sessions) Close() { s.client.Close() }

// List returns all sessions.
func (s *Sessions) List(ctx context.Context) (list apiserver.SessionList, err error) {
	return list, s.ask(ctx, http.MethodGet, "", nil, &list)
}

// Get returns a session.
func (s *Sessions) Get(ctx context.Context, name string) (state apiserver.Session, err error) {
	return state, s.ask(ctx, http.MethodGet, name, nil, &state)
}

// Put creates or changes a session of the cluster.
func (s *Sessions) Put(ctx context.Context, name string, change *apiserver.SessionChange) (state apiserver.Session, err error) {
	change.Cluster = &s.Cluster
	return state, s.ask(ctx, http.MethodPut, name, change, &state)
}

// End ends a session, and returns its last state.
func (s *Sessions) End(ctx context.Context, name string) (state apiserver.Session, err error) {
	return state, s.ask(ctx, http.MethodDelete, name, nil, &state)
}

func (s *Sessions) ask(ctx context.Context, method, name string, change *apiserver.SessionChange, answer any) error {
	path := apiserver.SessionsPath
	if name != "" {
		path += "/" + url.PathEscape(name)
	}
	path += "?" + url.Values{"cluster": {s.Cluster}}.Encode() // a shared server selects the live cluster by it
	if change == nil {
		return s.client.ask(ctx, method, path, nil, answer)
	}
	return s.client.ask(ctx, method, path, change, answer)
}
