package clients_test

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/websocket"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// backend passes on what a page asks, as Headlamp's server does. It adds the token of the kubeconfig. The page's Origin stays.
func backend(t *testing.T, kubeconfig string) *httptest.Server {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	require.NoError(t, err)
	target, err := url.Parse(config.Host)
	require.NoError(t, err)
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.Transport, err = rest.TransportFor(config)
	require.NoError(t, err)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Host = target.Host
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server
}

// TestHeadlampsServerReachesThePast has two Origins: that of Headlamp's page in a browser, and that of its desktop application. apiserver/headlamp_test.go
// checks the content of each answer. Here requests pass the listener.
func TestHeadlampsServerReachesThePast(t *testing.T) {
	p := serve(t)
	server := backend(t, p.kubeconfig(t, "now"))
	for _, origin := range []string{"http://localhost:4466", "file://"} {
		for _, c := range []struct {
			method, path, body string
			code               int
		}{
			{http.MethodGet, "/api/v1/namespaces", "", http.StatusOK},
			{http.MethodPost, "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", `{"spec": {"namespace": "default"}}`, http.StatusCreated},
		} {
			r, err := http.NewRequestWithContext(t.Context(), c.method, server.URL+c.path, strings.NewReader(c.body))
			require.NoError(t, err)
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Origin", origin)
			response, err := server.Client().Do(r)
			require.NoError(t, err)
			require.NoError(t, response.Body.Close())
			require.Equal(t, c.code, response.StatusCode, "%s %s of %s", c.method, c.path, origin)
		}
		config, err := websocket.NewConfig(strings.Replace(server.URL, "http", "ws", 1)+"/api/v1/namespaces?watch=1", origin)
		require.NoError(t, err)
		scheme, rest, _ := strings.Cut(origin, ":")
		config.Origin = &url.URL{Scheme: scheme, Opaque: rest} // As it is: NewConfig makes "file:" of "file://".
		conn, err := websocket.DialConfig(config)
		require.NoError(t, err, origin)
		var event string
		require.NoError(t, websocket.Message.Receive(conn, &event))
		require.Contains(t, event, `"type":"ADDED"`)
		require.NoError(t, conn.Close())
	}
}

// TestAnotherPageReadsNothingThroughHeadlampsServer opens a WebSocket to Headlamp's server, as every web page can. That server adds the token.
func TestAnotherPageReadsNothingThroughHeadlampsServer(t *testing.T) {
	p := serve(t)
	server := backend(t, p.kubeconfig(t, "now"))
	for _, origin := range []string{"https://evil.example", "null"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/api/v1/namespaces?watch=1", nil)
		require.NoError(t, err)
		for name, value := range map[string]string{
			"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==", "Origin": origin,
		} {
			r.Header.Set(name, value)
		}
		response, err := server.Client().Do(r)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, http.StatusForbidden, response.StatusCode, origin)
	}
}
