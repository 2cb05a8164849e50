package auditlog_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/kuberewind/kuberewind/internal/serve/auditlog"
)

// ask sends a request as alice to a server with the log in front of a handler.
func ask(t *testing.T, log *auditlog.Log, path string, handler http.HandlerFunc) (code int, id string) {
	t.Helper()
	done := make(chan struct{}) // the client has its answer before the line is written
	known := func(w http.ResponseWriter, r *http.Request) {
		defer close(done)
		caller := &user.DefaultInfo{Name: "alice", Groups: []string{"system:authenticated"}}
		log.Watch(handler).ServeHTTP(w, r.WithContext(request.WithUser(r.Context(), caller)))
	}
	server := httptest.NewServer(http.HandlerFunc(known))
	defer server.Close()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+path, nil)
	require.NoError(t, err)
	r.Header.Set("User-Agent", "k9s/1")
	r.Header.Set("Authorization", "Bearer hush")
	response, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	<-done
	return response.StatusCode, response.Header.Get("Audit-ID")
}

func ok(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "{}") }

func TestEachRequestIsRecordedAsAKubernetesAuditEvent(t *testing.T) {
	name := filepath.Join(t.TempDir(), "audit")
	log, err := auditlog.Open(name)
	require.NoError(t, err)
	at := "/clusters/11111111-2222-3333-4444-555555555555/at/seq:17"
	_, id := ask(t, log, at+"/api/v1/namespaces/shop/pods?watch=true&fieldSelector=metadata.name%3Dweb-0", ok)
	ask(t, log, at+"/apis/apps/v1/namespaces/shop/deployments/web/scale", http.NotFound)
	ask(t, log, at+"/apis", ok)
	ask(t, log, "/elsewhere", func(http.ResponseWriter, *http.Request) {})
	ask(t, log, at+"/api/v1/pods?watch=1", func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			fmt.Fprint(conn, "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
			_ = conn.Close()
		}
	})
	ask(t, log, strings.Replace(at, "at/seq:17", "session/night", 1)+"/api/v1/pods", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Kuberewind-Seq", "18")
		fmt.Fprint(w, "{}")
	})
	for _, query := range []string{
		"object?at=seq:5&resource=deployments.apps&namespace=shop&name=web", "object?at=seq:5&namespace=shop&name=a&name=b&resource=pods&resource=nodes",
		"compare?a=-10m&b=seq:7", "strip?from=1769828400000&to=1769828460500", "changes?from=x", "object?at=1&at=2",
	} {
		ask(t, log, "/timeline/v1/"+query, ok)
	}
	require.NoError(t, log.Close())

	info, err := os.Stat(name)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	require.NotContains(t, string(text), "hush")
	var got []string
	for line := range strings.Lines(string(text)) {
		var e auditv1.Event
		decoder := json.NewDecoder(strings.NewReader(line))
		decoder.DisallowUnknownFields()
		require.NoError(t, decoder.Decode(&e))
		require.Equal(t, "audit.k8s.io/v1 Event Metadata ResponseComplete alice [system:authenticated] k9s/1 [127.0.0.1]", fmt.Sprintf("%s %s %s %s %s %s %s %s",
			e.APIVersion, e.Kind, e.Level, e.Stage, e.User.Username, e.User.Groups, e.UserAgent, e.SourceIPs))
		require.False(t, e.StageTimestamp.Before(&e.RequestReceivedTimestamp))
		of := ""
		if o := e.ObjectRef; o != nil {
			of = strings.Join([]string{o.APIGroup, o.APIVersion, o.Resource, o.Subresource, o.Namespace, o.Name}, "|")
		}
		got = append(got, strings.TrimSpace(fmt.Sprintf("%s %s %d %s %s",
			e.Verb, of, e.ResponseStatus.Code, e.Annotations[auditlog.InstantAnnotation], e.Annotations[auditlog.SessionAnnotation])))
		if len(got) == 1 {
			require.Equal(t, string(e.AuditID), id)
			require.Equal(t, at+"/api/v1/namespaces/shop/pods?watch=true&fieldSelector=metadata.name%3Dweb-0", e.RequestURI)
		}
	}
	require.Equal(t, []string{
		"watch |v1|pods||shop|web-0 200 seq:17",
		"get apps|v1|deployments|scale|shop|web 404 seq:17",
		"get  200 seq:17",
		"get  200",
		"watch |v1|pods||| 101 seq:17",
		"list |v1|pods||| 200 seq:18 night",
		"get apps||deployments||shop|web 200 seq:5",
		"get ||||shop| 200 seq:5",
		"get  200 -10m..seq:7",
		"get  200 2026-01-31T03:00:00Z..2026-01-31T03:01:00.5Z",
		"get  200 x..",
		"get  200",
	}, got)
}

// TestNothingIsAnsweredWhileTheLogCannotBeWritten uses a pipe whose reader closes it and opens it again.
func TestNothingIsAnsweredWhileTheLogCannotBeWritten(t *testing.T) {
	name := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(name, 0o600))
	reader, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	require.NoError(t, err)
	log, err := auditlog.Open(name)
	require.NoError(t, err)
	require.NoError(t, reader.Close())
	code, _ := ask(t, log, "/one", ok)
	require.Equal(t, http.StatusOK, code)
	code, _ = ask(t, log, "/two", func(http.ResponseWriter, *http.Request) { t.Error("the handler was called") })
	require.Equal(t, http.StatusServiceUnavailable, code)

	reader, err = os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	require.NoError(t, err)
	defer func() { _ = reader.Close() }()
	code, _ = ask(t, log, "/three", ok)
	require.Equal(t, http.StatusOK, code)
	require.NoError(t, log.Close())
	var got []string
	lines := bufio.NewScanner(reader)
	for lines.Scan() {
		var e auditv1.Event
		require.NoError(t, json.Unmarshal(lines.Bytes(), &e))
		got = append(got, e.RequestURI)
	}
	require.Equal(t, []string{"/one", "/three"}, got)
}
