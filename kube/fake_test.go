package kube

import (
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
)

// serve starts a server with a handler, and returns a client of it.
func serve(t *testing.T, handler http.HandlerFunc) *Client {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return connect(t, &rest.Config{Host: server.URL}, Options{})
}

// connect makes a client that is closed at the end of the test.
func connect(t *testing.T, config *rest.Config, options Options) *Client {
	t.Helper()
	client, err := NewClient(config, options)
	require.NoError(t, err)
	t.Cleanup(client.Close)
	return client
}

// answer returns a handler that always sends the same answer.
func answer(code int, contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(code)
		fmt.Fprint(w, body)
	}
}

// stream sends the parts one by one. If hold is set, it then keeps the stream open.
func stream(hold bool, parts ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json;stream=watch")
		w.(http.Flusher).Flush()
		for _, part := range parts {
			fmt.Fprint(w, part)
			w.(http.Flusher).Flush()
		}
		if hold {
			<-r.Context().Done()
		}
	}
}

// failure returns the JSON of a Status.
func failure(code int, reason metav1.StatusReason, message string) string {
	return fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":%q,"reason":%q,"code":%d}`, message, reason, code)
}

// open starts a watch that is stopped at the end of the test.
func open(t *testing.T, lw *ListWatch) *Watch {
	t.Helper()
	w, err := lw.WatchWithContext(t.Context(), metav1.ListOptions{ResourceVersion: "1", AllowWatchBookmarks: true})
	require.NoError(t, err)
	t.Cleanup(w.Stop)
	return w.(*Watch)
}

// collect reads a watch to its end.
func collect(w watch.Interface) []watch.Event {
	var events []watch.Event
	for event := range w.ResultChan() {
		events = append(events, event)
	}
	return events
}

// discardLog discards a server's errors about its clients.
var discardLog = log.New(io.Discard, "", 0)

// certificate returns a server's own certificate as a CA bundle.
func certificate(server *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
}
