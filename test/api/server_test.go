package api_test

import (
	"context"
	"time"

	"bytes"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/kuberewind/kuberewind/internal/controlplane"
	"github.com/kuberewind/kuberewind/internal/recordertest"
)

// A server answers questions.
type server struct {
	config *rest.Config // of clients
	client *http.Client
	root   func(revision) string // URL of a whole API root; of the real server, it is one for all revisions
}

func realServer(t *testing.T, plane *controlplane.ControlPlane) *server {
	t.Helper()
	client, err := rest.HTTPClientFor(plane.Config())
	require.NoError(t, err)
	return &server{config: plane.Config(), client: client, root: func(revision) string { return plane.Config().Host }}
}

// An answer is what a server says to a question.
type answer struct {
	code      int
	mediaType string
	body      any         // JSON, or a text
	err       error       // there is no answer
	at        time.Time   // when it was read
	cut       bool        // a watch ended, and no bookmark had said that all had come
	times     []time.Time // when each event of a watch was read
}

// dated notes when an answer was read: ages in it are of that time.
func (a *answer) dated() { a.at = time.Now() }

// readAt is when an event was read.
func (a *answer) readAt(event int) time.Time {
	if event < len(a.times) {
		return a.times[event]
	}
	return a.at
}

// patience bounds one answer.
const patience = recordertest.Patience

func (s *server) ask(ctx context.Context, q question) (a answer) {
	defer a.dated()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	response, err := s.send(ctx, q)
	if err != nil {
		return answer{err: err}
	}
	defer response.Body.Close()
	return read(response)
}

func read(response *http.Response) (a answer) {
	a.code = response.StatusCode
	a.mediaType, _, _ = mime.ParseMediaType(response.Header.Get("Content-Type"))
	text, err := io.ReadAll(response.Body)
	a.body = string(text)
	if err == nil && a.mediaType == "application/json" {
		a.body, err = decode(text)
	}
	a.err = err
	return a
}

// decode gives one JSON value as it is, and the events of a watch as a list.
func decode(text []byte) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	values := []any{}
	for decoder.More() {
		var value any
		if err := decoder.Decode(&value); err != nil {
			return nil, err
		}
		values = append(values, value)
	}
	if len(values) == 1 {
		return values[0], nil
	}
	return values, nil
}

func (s *server) send(ctx context.Context, q question) (*http.Response, error) {
	target := s.root(q.root) + q.path
	if len(q.query) > 0 {
		target += "?" + q.query.Encode()
	}
	asking, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return nil, err
	}
	asking.Header.Set("Accept", q.accept)
	for name, value := range q.header {
		asking.Header.Set(name, value)
	}
	return s.client.Do(asking)
}
