package past

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/kuberewind/kuberewind/internal/serve"
)

// answersWithin is the time limit for a server's answer.
const answersWithin = 30 * time.Second

// A client sends requests to a server. Its errors are the server's.
type client struct {
	url, what string // what is the requested thing, for errors
	http      *http.Client
}

// configOf returns the client configuration of a server, with the server's token.
func configOf(access *serve.Access) *rest.Config {
	return &rest.Config{Host: access.URL, BearerToken: access.Token, TLSClientConfig: rest.TLSClientConfig{CAData: access.CA}}
}

func newClient(config *rest.Config, origin, what string, timeout time.Duration) (*client, error) {
	config.Timeout = timeout
	made, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	return &client{url: origin, what: what, http: made}, nil
}

// Close closes idle connections.
func (c *client) Close() { c.http.CloseIdleConnections() }

// ask sends a request, with a body unless body is nil, and decodes the answer.
func (c *client) ask(ctx context.Context, method, path string, body, answer any) error {
	var sent io.Reader = http.NoBody
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		sent = bytes.NewReader(text)
	}
	r, err := http.NewRequestWithContext(ctx, method, c.url+path, sent)
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	response, err := c.http.Do(r)
	if err != nil {
		return fmt.Errorf("ask the server for %s: %w", c.what, err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return fmt.Errorf("ask the server for %s: %w", c.what, err)
	}
	if response.StatusCode < http.StatusMultipleChoices {
		return json.Unmarshal(text, answer)
	}
	status := &metav1.Status{}
	if err := json.Unmarshal(text, status); err != nil {
		return fmt.Errorf("the server answered %s without a reason", response.Status)
	}
	return apierrors.FromObject(status)
}
