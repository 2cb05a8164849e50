package badinput_test

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// server is a small API server: discovery as servers without aggregated discovery have it, the namespace kube-system, and
// resources with their history. Faults make it lie.
type server struct {
	*httptest.Server
	uid       string // of kube-system
	resources []*resource
	identity  faults // of the question who the cluster is
	discovery faults

	away atomic.Bool // connections are closed as soon as they are made

	mu   sync.Mutex // protects what follows, and the resources' histories
	rv   int
	news chan struct{} // closed and replaced with each change
}

func newServer(t *testing.T, resources ...*resource) *server {
	t.Helper()
	s := &server{uid: uuid.NewString(), rv: 100, news: make(chan struct{}), resources: resources}
	s.Server = httptest.NewUnstartedServer(s)
	s.Listener = &moody{Listener: s.Listener, away: &s.away}
	s.EnableHTTP2 = true
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	for _, r := range resources {
		r.server = s
	}
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

// moody is a listener whose machine can be away.
type moody struct {
	net.Listener
	away *atomic.Bool
}

func (m *moody) Accept() (net.Conn, error) {
	conn, err := m.Listener.Accept()
	if err == nil && m.away.Load() {
		err = conn.Close()
	}
	return conn, err
}

// ServeHTTP implements http.Handler.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for _, resource := range s.resources {
		if r.URL.Path == resource.path() {
			resource.serve(w, r)
			return
		}
	}
	switch path := strings.Split(strings.Trim(r.URL.Path, "/"), "/"); {
	case r.URL.Path == "/api/v1/namespaces/kube-system":
		s.identity.or(w, r, s.kubeSystem)
	case path[0] == "api" && len(path) <= 2, path[0] == "apis" && len(path) <= 3:
		s.discovery.or(w, r, s.discover)
	case r.URL.Path == "/version":
		answer(w, http.StatusOK, `{"major":"1","minor":"99","gitVersion":"v1.99.0-double"}`)
	case r.URL.Path == "/openapi/v3":
		answer(w, http.StatusOK, `{"paths":{}}`)
	default:
		notFound(w, r)
	}
}

func (s *server) kubeSystem(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, fmt.Sprintf(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"kube-system","uid":%q,"resourceVersion":"1"}}`, s.uid))
}

func (s *server) discover(w http.ResponseWriter, r *http.Request) {
	groups := map[string][]*resource{}
	for _, resource := range s.resources {
		gv := strings.TrimPrefix(resource.groupVersion(), "v1")
		groups[gv] = append(groups[gv], resource)
	}
	path := strings.TrimPrefix(r.URL.Path, "/apis/")
	switch {
	case r.URL.Path == "/api":
		answer(w, http.StatusOK, `{"kind":"APIVersions","versions":["v1"]}`)
	case r.URL.Path == "/apis":
		answer(w, http.StatusOK, groupList(groups))
	case r.URL.Path == "/api/v1":
		answer(w, http.StatusOK, resourceList("v1", groups[""]))
	case groups[path] != nil:
		answer(w, http.StatusOK, resourceList(path, groups[path]))
	default:
		notFound(w, r)
	}
}

func groupList(groups map[string][]*resource) string {
	var list []string
	for gv := range groups {
		if group, version, ok := strings.Cut(gv, "/"); ok {
			list = append(list, fmt.Sprintf(`{"name":%q,"versions":[{"groupVersion":%q,"version":%q}],"preferredVersion":{"groupVersion":%q,"version":%q}}`,
				group, gv, version, gv, version))
		}
	}
	return `{"kind":"APIGroupList","apiVersion":"v1","groups":[` + strings.Join(list, ",") + `]}`
}

func resourceList(gv string, resources []*resource) string {
	var list []string
	for _, r := range resources {
		list = append(list, fmt.Sprintf(`{"name":%q,"singularName":"","namespaced":true,"kind":%q,"verbs":["get","list","watch"]}`, r.plural, r.kind))
	}
	return fmt.Sprintf(`{"kind":"APIResourceList","apiVersion":"v1","groupVersion":%q,"resources":[%s]}`, gv, strings.Join(list, ","))
}

func answer(w http.ResponseWriter, code int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write([]byte(body)) // the client may be gone
}

func notFound(w http.ResponseWriter, r *http.Request) {
	answer(w, http.StatusNotFound, status(http.StatusNotFound, "NotFound", "the server could not find the requested resource "+r.URL.Path, 0))
}

// status is a Status as API servers send it.
func status(code int, reason, message string, retryAfter int) string {
	text, _ := json.Marshal(map[string]any{
		"kind": "Status", "apiVersion": "v1", "metadata": map[string]any{}, "status": "Failure",
		"message": message, "reason": reason, "code": code, "details": map[string]any{"retryAfterSeconds": retryAfter},
	})
	return string(text)
}

// goAway breaks every connection, and each that is made until comeBack.
func (s *server) goAway() {
	s.away.Store(true)
	s.CloseClientConnections()
}

func (s *server) comeBack() { s.away.Store(false) }

// kubeconfig writes one for the server.
func (s *server) kubeconfig(t *testing.T) string {
	t.Helper()
	return writeKubeconfig(t, s.URL, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
}

func writeKubeconfig(t *testing.T, address string, authority []byte) string {
	t.Helper()
	text, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": "here",
		"clusters": []any{map[string]any{"name": "lying", "cluster": map[string]any{"server": address, "certificate-authority-data": authority}}},
		"users":    []any{map[string]any{"name": "me", "user": map[string]any{"token": "secret-token-of-the-test"}}},
		"contexts": []any{map[string]any{"name": "here", "context": map[string]any{"cluster": "lying", "user": "me"}}},
	})
	require.NoError(t, err)
	return writeFile(t, "kubeconfig", string(text))
}

func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}
