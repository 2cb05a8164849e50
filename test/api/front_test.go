package api_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"

	"github.com/kuberewind/kuberewind/apiserver"
	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/recordertest"
	"github.com/kuberewind/kuberewind/internal/serve"
	"github.com/kuberewind/kuberewind/internal/serve/delegate"
)

// A front is what replay serve puts before the API of the past, in a mode of authorization.
type front struct {
	url    string
	client *http.Client
}

func newFront(t *testing.T, o *tenancy, mode delegate.Mode, access apiserver.Access) *front {
	t.Helper()
	live := o.system.plane.Config()
	if mode == delegate.Server {
		live = o.server
	}
	var minutes atomic.Int64 // no answer of a live API is kept
	d, err := delegate.New(delegate.Options{
		Mode: mode, Clusters: map[string]*rest.Config{o.uid: live, o.scene.Cluster().UID: o.other.config},
		Now: func() time.Time { return time.Now().Add(time.Duration(minutes.Add(1)) * time.Minute) },
	})
	require.NoError(t, err)
	access.Authorize, access.Cluster = d.Authorize, d.Cluster
	handler, err := apiserver.New(apiserver.Options{Records: []*history.Record{o.system.record, o.scene}, Access: access})
	require.NoError(t, err)
	t.Cleanup(handler.Close)
	certText, keyText, err := cert.GenerateSelfSignedCertKey("127.0.0.1", nil, nil)
	require.NoError(t, err)
	certificate, err := tls.X509KeyPair(certText, keyText)
	require.NoError(t, err)
	s, err := serve.Listen(serve.Options{Address: "127.0.0.1:0", Handler: handler, Log: slog.New(slog.DiscardHandler),
		Shared: &serve.Shared{Certificate: certificate, Authenticator: d, ClientCertificates: d.Certificates()}})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-served)
	})
	return (&front{url: s.Access().URL}).with(t, nil)
}

// with is the front for a client that shows a certificate.
func (f *front) with(t *testing.T, certificate *tls.Certificate) *front {
	t.Helper()
	config := &tls.Config{InsecureSkipVerify: true} // the test is about who the client is
	if certificate != nil {
		config.Certificates = []tls.Certificate{*certificate}
	}
	transport := &http.Transport{TLSClientConfig: config}
	t.Cleanup(transport.CloseIdleConnections)
	return &front{url: f.url, client: &http.Client{Transport: transport}}
}

func (f *front) send(t *testing.T, token, path string, change ...func(*http.Request)) *http.Response {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, f.url+path, nil)
	require.NoError(t, err)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	for _, one := range change {
		one(r)
	}
	response, err := f.client.Do(r)
	require.NoError(t, err)
	return response
}

func post(r *http.Request, body string) {
	r.Method, r.Body = http.MethodPost, io.NopCloser(strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
}

func (f *front) ask(t *testing.T, token, path string, change ...func(*http.Request)) (code int, text string) {
	t.Helper()
	response := f.send(t, token, path, change...)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(body)
}

func (f *front) read(t *testing.T, token, path string, into any) {
	t.Helper()
	code, text := f.ask(t, token, path)
	require.Equal(t, http.StatusOK, code, text)
	require.NoError(t, json.Unmarshal([]byte(text), into))
}

// gives does not wait for a watch to end.
func (f *front) gives(t *testing.T, token, path string) {
	t.Helper()
	response := f.send(t, token, path)
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		text, err := io.ReadAll(response.Body)
		require.FailNow(t, path, "%s: %s, %v", response.Status, text, err)
	}
}

func (f *front) refuses(t *testing.T, token, path string, code int, says string, change ...func(*http.Request)) {
	t.Helper()
	got, text := f.ask(t, token, path, change...)
	require.Equal(t, code, got, "%s: %s", path, text)
	require.Contains(t, text, says, path)
	require.Contains(t, text, `"kind":"Status"`, path)
}

// eventually waits for the live API, whose RBAC follows its writes, and for the recorder.
func (f *front) eventually(t *testing.T, token, path string, code int, says string) {
	t.Helper()
	recordertest.Eventually(t.Context(), t, path+" gets "+http.StatusText(code), func() bool {
		got, text := f.ask(t, token, path)
		return got == code && strings.Contains(text, says)
	})
}

// events are those of an open watch.
type events struct {
	decoder *json.Decoder
}

type watchEvent struct {
	Type   string
	Object struct {
		Code    int32
		Message string
	}
}

func (f *front) watch(t *testing.T, token, path string) *events {
	t.Helper()
	response := f.send(t, token, path+"?watch=1&allowWatchBookmarks=true")
	t.Cleanup(func() { _ = response.Body.Close() })
	require.Equal(t, http.StatusOK, response.StatusCode)
	return &events{decoder: json.NewDecoder(response.Body)}
}

// next skips the objects before the watch.
func (e *events) next(t *testing.T) (event watchEvent) {
	t.Helper()
	for event.Type == "" || event.Type == "ADDED" {
		event = watchEvent{}
		require.NoError(t, e.decoder.Decode(&event))
	}
	return event
}

// A strangeAPI is the live API of a cluster that authenticates no user.
type strangeAPI struct {
	config *rest.Config

	mu     sync.Mutex // protects what follows
	tokens []string
}

func newStrangeAPI(t *testing.T) *strangeAPI {
	t.Helper()
	a := &strangeAPI{}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.mu.Lock()
		defer a.mu.Unlock()
		body, _ := io.ReadAll(r.Body)
		a.tokens = append(a.tokens, r.Header.Get("Authorization")+string(body))
		if strings.HasSuffix(r.URL.Path, "/tokenreviews") {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(w, `{"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1","status":{}}`)
			return
		}
		w.WriteHeader(http.StatusUnauthorized)
	}))
	t.Cleanup(server.Close)
	text, err := cert.EncodeCertificates(server.Certificate())
	require.NoError(t, err)
	a.config = &rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{CAData: text}}
	return a
}

// taken gives what was sent to it since the last call.
func (a *strangeAPI) taken() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	taken := a.tokens
	a.tokens = nil
	return taken
}
