package past

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/kuberewind/kuberewind/apiserver"
	"github.com/kuberewind/kuberewind/internal/serve"
)

// answersWithin is the patience with a server that reads the record.
const answersWithin = 30 * time.Second

// Sessions asks a server about the sessions of a cluster. Errors are what the server says.
type Sessions struct {
	Cluster string // the UID
	url     string
	client  *http.Client
}

// NewSessions makes a client of a server. Close lets go of it.
func NewSessions(access *serve.Access, cluster string) (*Sessions, error) {
	config := &rest.Config{Host: access.URL, BearerToken: access.Token, TLSClientConfig: rest.TLSClientConfig{CAData: access.CA}}
	return newSessions(config, access.URL, cluster)
}

func newSessions(config *rest.Config, origin, cluster string) (*Sessions, error) {
	config.Timeout = answersWithin
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	return &Sessions{Cluster: cluster, url: origin + apiserver.SessionsPath, client: client}, nil
}

// Close lets go of connections.
func (s *Sessions) Close() { s.client.CloseIdleConnections() }

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
	var body io.Reader = http.NoBody
	if change != nil {
		text, err := json.Marshal(change)
		if err != nil {
			return err
		}
		body = bytes.NewReader(text)
	}
	target := s.url
	if name != "" {
		target += "/" + url.PathEscape(name)
	}
	// A shared server finds by the parameter whose users may ask.
	r, err := http.NewRequestWithContext(ctx, method, target+"?"+url.Values{"cluster": {s.Cluster}}.Encode(), body)
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	response, err := s.client.Do(r)
	if err != nil {
		return fmt.Errorf("ask the server for its sessions: %w", err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return fmt.Errorf("ask the server for its sessions: %w", err)
	}
	if response.StatusCode < http.StatusMultipleChoices {
		return json.Unmarshal(text, answer)
	}
	status := &metav1.Status{}
	if err := json.Unmarshal(text, status); err != nil {
		return fmt.Errorf("the server answers with %s, and does not say why", response.Status)
	}
	return apierrors.FromObject(status)
}
