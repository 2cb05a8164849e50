package past

import (
	"context"
	"net/http"
	"net/url"

	"k8s.io/client-go/rest"

	"github.com/kuberewind/kuberewind/apiserver"
	"github.com/kuberewind/kuberewind/internal/serve"
)

// Sessions asks a server about the sessions of a cluster. Errors are what the server says.
type Sessions struct {
	Cluster string // the UID
	client  *client
}

// NewSessions makes a client of a server. Close closes it.
func NewSessions(access *serve.Access, cluster string) (*Sessions, error) {
	return newSessions(configOf(access), access.URL, cluster)
}

func newSessions(config *rest.Config, origin, cluster string) (*Sessions, error) {
	c, err := newClient(config, origin, "its sessions", answersWithin)
	return &Sessions{Cluster: cluster, client: c}, err
}

// Close closes idle connections.
func (s *Sessions) Close() { s.client.Close() }

// List gives all sessions.
func (s *Sessions) List(ctx context.Context) (list apiserver.SessionList, err error) {
	return list, s.ask(ctx, http.MethodGet, "", nil, &list)
}

// Get gives a session.
func (s *Sessions) Get(ctx context.Context, name string) (state apiserver.Session, err error) {
	return state, s.ask(ctx, http.MethodGet, name, nil, &state)
}

// Put makes a session of the cluster, or moves it.
func (s *Sessions) Put(ctx context.Context, name string, change *apiserver.SessionChange) (state apiserver.Session, err error) {
	change.Cluster = &s.Cluster
	return state, s.ask(ctx, http.MethodPut, name, change, &state)
}

// End ends a session, and gives what it was.
func (s *Sessions) End(ctx context.Context, name string) (state apiserver.Session, err error) {
	return state, s.ask(ctx, http.MethodDelete, name, nil, &state)
}

func (s *Sessions) ask(ctx context.Context, method, name string, change *apiserver.SessionChange, answer any) error {
	path := apiserver.SessionsPath
	if name != "" {
		path += "/" + url.PathEscape(name)
	}
	path += "?" + url.Values{"cluster": {s.Cluster}}.Encode() // A shared server finds by it whose users may ask.
	if change == nil {
		return s.client.ask(ctx, method, path, nil, answer)
	}
	return s.client.ask(ctx, method, path, change, answer)
}
