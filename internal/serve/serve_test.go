package serve_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/util/cert"

	"github.com/kuberewind/kuberewind/internal/serve"
)

// TestMain ignores the goroutines of net/http that wait half a second for clients whose requests it refused.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*conn).closeWriteAndWait"))
}

// start serves until the test ends, or until the returned function is called. That function returns the result of Serve.
func start(t *testing.T, o serve.Options) (serve.Access, func() error) {
	t.Helper()
	if o.Address == "" {
		o.Address = "127.0.0.1:0"
	}
	o.Log = slog.New(slog.DiscardHandler)
	s, err := serve.Listen(o)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx) }()
	end := func() error {
		cancel()
		return <-served
	}
	t.Cleanup(func() {
		s.Close()
		cancel()
	})
	return s.Access(), end
}

// client trusts the server's CA. It speaks HTTP/2 if http2 is set.
func client(t *testing.T, a serve.Access, http2 bool) *http.Client {
	t.Helper()
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(a.CA))
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: http2}
	if !http2 {
		transport.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// asking returns a request with the token.
func asking(t *testing.T, a serve.Access, path string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, a.URL+path, nil)
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+a.Token)
	return r
}

// get sends a request with the token, after the test's changes.
func get(t *testing.T, a serve.Access, http2 bool, path string, change func(*http.Request)) (code int, body string) {
	t.Helper()
	r := asking(t, a, path)
	change(r)
	response, err := client(t, a, http2).Do(r)
	require.NoError(t, err)
	defer response.Body.Close()
	require.Empty(t, response.Header.Get("Access-Control-Allow-Origin"))
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(text)
}

func asIs(*http.Request) {}

var hello = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	caller, _ := request.UserFrom(r.Context())
	fmt.Fprintf(w, "%s %s %q", r.Proto, caller.GetName(), r.Header.Get("Authorization"))
})

func TestTheHandlerSeesTheUserAndNoToken(t *testing.T) {
	access, _ := start(t, serve.Options{Handler: hello})
	for http2, proto := range map[bool]string{false: "HTTP/1.1", true: "HTTP/2.0"} {
		_, body := get(t, access, http2, "/", asIs)
		require.Equal(t, proto+` kuberewind:local ""`, body)
	}
}

func TestEachRequestOfTheTableIsDenied(t *testing.T) {
	var reached atomic.Bool
	access, _ := start(t, serve.Options{AllowedHosts: []string{"Jump.Example.com", "10.0.0.1"}, Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Store(true) })})
	header := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	host := func(name string) func(*http.Request) { return func(r *http.Request) { r.Host = name } }
	mine := strings.TrimPrefix(access.URL, "https://")
	for name, c := range map[string]struct {
		change func(*http.Request)
		code   int
		says   string
	}{
		"no token":                  {func(r *http.Request) { r.Header.Del("Authorization") }, 401, "replay kubeconfig"},
		"another token":             {header("Authorization", "Bearer "+strings.Repeat("A", len(access.Token))), 401, "token"},
		"the begin of the token":    {header("Authorization", "Bearer "+access.Token[:10]), 401, "token"},
		"a password":                {header("Authorization", "Basic "+access.Token), 401, "token"},
		"another Host":              {host("evil.example:443"), 403, `"evil.example" is not allowed: if clients may use this name for the server, start replay serve with --allowed-hosts`},
		"a Host that begins alike":  {host("localhost.evil.example"), 403, "--allowed-hosts"},
		"an address that is ours":   {host("192.168.0.1"), 403, "--allowed-hosts"},
		"a foreign Origin":          {header("Origin", "https://evil.example"), 403, `"https://evil.example"`},
		"no Origin that has a name": {header("Origin", "null"), 403, "another origin"},
		"another port's Origin":     {header("Origin", "https://127.0.0.1:1"), 403, "another origin"},
		"the Origin of plain HTTP":  {header("Origin", "http://"+mine), 403, "another origin"},
		"two Origins": {func(r *http.Request) {
			r.Header["Origin"] = []string{access.URL, "https://evil.example"}
		}, 403, "another origin"},
		"any port of localhost":     {host("localhost:1"), 200, ""},
		"localhost in capitals":     {host("LOCALHOST"), 200, ""},
		"IPv6 with a port":          {host("[::1]:7"), 200, ""},
		"IPv6 without a port":       {host("[::1]"), 200, ""},
		"IPv6 at full length":       {host("[0:0:0:0:0:0:0:1]:7"), 200, ""},
		"an allowed name":           {host("jump.example.com:9"), 200, ""},
		"an allowed address":        {host("10.0.0.1"), 200, ""},
		"its own Origin":            {header("Origin", access.URL), 200, ""},
		"its own Origin and a path": {header("Origin", access.URL+"/clusters/u/at/seq:1"), 200, ""},
		"the scheme in small":       {header("Authorization", "bearer "+access.Token), 200, ""},
	} {
		for _, http2 := range []bool{false, true} {
			reached.Store(false)
			code, body := get(t, access, http2, "/clusters/u/at/seq:1/api", c.change)
			require.Equal(t, c.code, code, "%s: %s", name, body)
			require.Equal(t, c.code == http.StatusOK, reached.Load(), name)
			if c.code == http.StatusOK {
				continue
			}
			var status metav1.Status
			require.NoError(t, json.Unmarshal([]byte(body), &status), "%s: %s", name, body)
			require.Equal(t, metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, status.TypeMeta)
			require.Equal(t, int32(c.code), status.Code)
			require.Equal(t, map[int]metav1.StatusReason{401: metav1.StatusReasonUnauthorized, 403: metav1.StatusReasonForbidden}[c.code], status.Reason)
			require.Contains(t, status.Message, c.says, name)
		}
	}
}

// TestARequestThatAServerForwardsNeedsABearerTokenAndAnAllowedPage plays a server such as Headlamp's. It forwards the
// Origin of its page, and adds the token of the kubeconfig. It does the same for a WebSocket of any page that reaches it.
// Such a page has another host, or none.
func TestARequestThatAServerForwardsNeedsABearerTokenAndAnAllowedPage(t *testing.T) {
	proxied, _ := start(t, serve.Options{Proxied: true, AllowedHosts: []string{"headlamp.example.com"}, Handler: hello})
	strict, _ := start(t, serve.Options{AllowedHosts: []string{"headlamp.example.com"}, Handler: hello})
	ask := func(access serve.Access, authorization string, origins []string) (int, string) {
		return get(t, access, false, "/clusters/u/at/seq:1/api", func(r *http.Request) {
			r.Header["Origin"] = origins
			r.Header.Set("Authorization", authorization)
		})
	}
	for _, c := range []struct {
		origins []string
		code    int
	}{
		{[]string{"file://"}, http.StatusOK},
		{[]string{"http://localhost:4466"}, http.StatusOK},
		{[]string{"https://127.0.0.1:1"}, http.StatusOK},
		{[]string{"http://[::1]:4466"}, http.StatusOK},
		{[]string{"https://headlamp.example.com"}, http.StatusOK},
		{[]string{"https://evil.example"}, http.StatusForbidden},
		{[]string{"http://localhost.evil.example:4466"}, http.StatusForbidden},
		{[]string{"http://evil.localhost"}, http.StatusForbidden},
		{[]string{"http://localhost@evil.example"}, http.StatusForbidden},
		{[]string{"http://evil.example@localhost"}, http.StatusForbidden},
		{[]string{"http://localhost,https://evil.example"}, http.StatusForbidden},
		{[]string{"http://localhost https://evil.example"}, http.StatusForbidden},
		{[]string{"http://localhost/https://evil.example"}, http.StatusForbidden},
		{[]string{"chrome-extension://localhost"}, http.StatusForbidden},
		{[]string{"file:///home/ada/evil.html"}, http.StatusForbidden},
		{[]string{"file://evil.example"}, http.StatusForbidden},
		{[]string{"http://"}, http.StatusForbidden},
		{[]string{"localhost"}, http.StatusForbidden},
		{[]string{"null"}, http.StatusForbidden},
		{[]string{""}, http.StatusForbidden},
		{[]string{"http://localhost:4466", "https://evil.example"}, http.StatusForbidden},
		{[]string{"file://", "file://"}, http.StatusForbidden},
	} {
		code, body := ask(proxied, "Bearer "+proxied.Token, c.origins)
		require.Equal(t, c.code, code, "%q: %s", c.origins, body)
		if code == http.StatusForbidden {
			require.Contains(t, body, "start replay serve with --allowed-hosts and that host")
		} else {
			code, body = ask(proxied, "Bearer guess", c.origins)
			require.Equal(t, http.StatusUnauthorized, code, "%q: %s", c.origins, body)
		}
		for _, none := range []string{"", "Basic " + proxied.Token, "Bearer "} {
			code, body = ask(proxied, none, c.origins)
			require.Equal(t, http.StatusForbidden, code, "%q %q: %s", c.origins, none, body)
		}
		code, body = ask(strict, "Bearer "+strict.Token, c.origins)
		require.Equal(t, http.StatusForbidden, code, "the listener of the page, %q: %s", c.origins, body)
		require.NotContains(t, body, "--allowed-hosts")
	}
	code, body := get(t, proxied, false, "/", func(r *http.Request) {
		r.Host = "evil.example"
		r.Header.Set("Origin", "file://")
	})
	require.Equal(t, http.StatusForbidden, code, "another name of the host stays refused: %s", body)
}

func TestPlainHTTPGetsAnErrorThatNamesHTTPS(t *testing.T) {
	access, _ := start(t, serve.Options{Handler: hello})
	response, err := client(t, access, false).Get(strings.Replace(access.URL, "https", "http", 1))
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusBadRequest, response.StatusCode)
	require.Equal(t, "Client sent an HTTP request to an HTTPS server.\n", string(body))
}

func TestACertificateOfAnotherServerIsNotTrusted(t *testing.T) {
	one, _ := start(t, serve.Options{Handler: hello})
	two, _ := start(t, serve.Options{Handler: hello})
	require.NotEqual(t, one.Token, two.Token)
	one.CA = two.CA
	_, err := client(t, one, true).Get(one.URL) //nolint:bodyclose // There is none.
	require.ErrorAs(t, err, new(*tls.CertificateVerificationError))
}

func TestTheCertificateCoversEveryAllowedName(t *testing.T) {
	access, _ := start(t, serve.Options{Handler: hello, AllowedHosts: []string{"jump.example.com", "10.0.0.1"}})
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(access.CA))
	for name, valid := range map[string]bool{
		"localhost": true, "127.0.0.1": true, "::1": true, "jump.example.com": true, "10.0.0.1": true, "evil.example": false, "10.0.0.2": false,
	} {
		conn, err := tls.Dial("tcp", strings.TrimPrefix(access.URL, "https://"), &tls.Config{RootCAs: roots, ServerName: name})
		require.Equal(t, valid, err == nil, "%s: %v", name, err)
		if valid {
			require.NoError(t, conn.Close())
		}
	}
}

func TestOnlyLoopbackListens(t *testing.T) {
	for _, address := range []string{"0.0.0.0:0", ":0", "[::]:0", "192.0.2.1:0", "example.com:0", "10.0.0.1:6443"} {
		_, err := serve.Listen(serve.Options{Address: address, Handler: hello})
		require.ErrorContains(t, err, "let the live cluster decide who may read (--authorization live-self or live)", address)
	}
	_, err := serve.Listen(serve.Options{Address: "127.0.0.1", Handler: hello})
	require.ErrorContains(t, err, "write HOST:PORT")
	for _, name := range []string{"*", "jump.example.com:443", "https://jump.example.com", "", "a b"} {
		_, err := serve.Listen(serve.Options{Address: "127.0.0.1:0", Handler: hello, AllowedHosts: []string{name}})
		require.ErrorContains(t, err, "is not a host name", name)
	}
	access, _ := start(t, serve.Options{Address: "localhost:0", Handler: hello})
	require.Contains(t, access.URL, "https://127.0.0.1:")
	_, err = serve.Listen(serve.Options{Address: strings.TrimPrefix(access.URL, "https://"), Handler: hello})
	require.ErrorContains(t, err, "choose another address with --listen")
}

func TestAURLOfAMebibyteGetsAClearError(t *testing.T) {
	access, _ := start(t, serve.Options{Handler: hello})
	path := "/api?labelSelector=" + strings.Repeat("a", 1<<20)
	code, _ := get(t, access, false, path, asIs)
	require.Equal(t, http.StatusRequestHeaderFieldsTooLarge, code)

	// With HTTP/2, the client knows the maximum header length, and sends no longer header.
	warm := client(t, access, true)
	response, err := warm.Get(access.URL)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	_, err = warm.Get(access.URL + path) //nolint:bodyclose // There is none.
	var failed *url.Error
	require.ErrorAs(t, err, &failed)
	require.ErrorContains(t, failed.Err, "request header list larger than peer's advertised limit")

	code, _ = get(t, access, true, "/api?labelSelector="+strings.Repeat("a", 100<<10), asIs)
	require.Equal(t, http.StatusOK, code)
}

func TestABodyIsReadUpToTheLimitOfAnAPIServer(t *testing.T) {
	var tooLarge atomic.Bool
	access, _ := start(t, serve.Options{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, err := io.Copy(io.Discard, r.Body)
		tooLarge.Store(errors.As(err, new(*http.MaxBytesError)))
	})})
	get(t, access, true, "/", func(r *http.Request) { r.Body = io.NopCloser(strings.NewReader(strings.Repeat("a", 4<<20))) })
	require.True(t, tooLarge.Load())
}

func TestAtTheEndWatchesEndAndOtherAnswersFinish(t *testing.T) {
	watching, listing, ended := make(chan bool), make(chan bool), make(chan error, 1)
	access, end := start(t, serve.Options{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("watch") {
			fmt.Fprint(w, "event")
			close(watching)
			<-r.Context().Done()
			ended <- context.Cause(r.Context())
			return
		}
		close(listing)
		<-watching
		fmt.Fprint(w, "whole, after ", <-ended)
	})})
	answers := make(chan string, 2)
	c := client(t, access, false)
	for _, path := range []string{"/api/v1/pods", "/api/v1/pods?watch=true"} {
		r := asking(t, access, path)
		go func() {
			response, err := c.Do(r)
			if err != nil {
				answers <- err.Error()
				return
			}
			defer func() { _ = response.Body.Close() }()
			body, err := io.ReadAll(response.Body)
			answers <- fmt.Sprintf("%s %v", body, err)
		}()
	}
	<-watching
	<-listing
	require.NoError(t, end())
	require.ElementsMatch(t, []string{"event <nil>", "whole, after the server is shutting down <nil>"}, []string{<-answers, <-answers})
}

func TestTheServerAnswersTheHealthPath(t *testing.T) {
	access, _ := start(t, serve.Options{Handler: http.NotFoundHandler()})
	code, body := get(t, access, true, serve.HealthPath, asIs)
	require.Equal(t, http.StatusOK, code)
	require.Equal(t, "ok", body)
	code, _ = get(t, access, true, serve.HealthPath, func(r *http.Request) { r.Header.Del("Authorization") })
	require.Equal(t, http.StatusUnauthorized, code)
}

func TestASharedServerHasAURLThatReachesIt(t *testing.T) {
	for names, want := range map[string]map[string]string{
		"replay.example.com": {"127.0.0.1:0": "127.0.0.1", "0.0.0.0:0": "replay.example.com"},
		"localhost":          {"127.0.0.1:0": "localhost", "0.0.0.0:0": "localhost"},
	} {
		certText, keyText, err := cert.GenerateSelfSignedCertKey(names, nil, nil)
		require.NoError(t, err)
		certificate, err := tls.X509KeyPair(certText, keyText)
		require.NoError(t, err)
		for address, host := range want {
			access, _ := start(t, serve.Options{Address: address, Shared: &serve.Shared{Certificate: certificate}, Handler: hello})
			at, err := url.Parse(access.URL)
			require.NoError(t, err)
			require.Equal(t, host, at.Hostname(), address)
		}
	}
}
