package discovery_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kuberewind/kuberewind/apiserver/internal/discovery"
	"github.com/kuberewind/kuberewind/history"
)

// aggregated is the Accept header of client-go.
const aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"

var instant = time.Date(2026, 4, 5, 6, 7, 8, 0, time.UTC)

// record is a Source of documents by path, and of streams.
type record struct {
	documents map[string]string
	streams   []history.Resource
	failure   error
}

func (r *record) Document(_ context.Context, _ time.Time, path string) (history.Document, bool, error) {
	text, found := r.documents[path]
	if !found {
		return history.Document{}, false, r.failure
	}
	return history.Document{Path: path, ObservedAt: instant, Content: []byte(text)}, true, r.failure
}

func (r *record) Discovery(context.Context, time.Time) ([]history.Resource, error) {
	return r.streams, r.failure
}

// group is a discovery document of one group with one version.
func group(name, version, resources string) string {
	return `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","metadata":{},"items":[{"metadata":{"name":"` + name + `"},"versions":[
		{"version":"` + version + `","resources":[` + resources + `],"freshness":"Current"}]}]}`
}

const (
	core = `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","metadata":{},"items":[{"metadata":{},"versions":[{"version":"v1","resources":[
		{"resource":"pods","responseKind":{"group":"","version":"","kind":"Pod"},"scope":"Namespaced","singularResource":"pod","verbs":["watch","create","get","list"],"shortNames":["po"],
		 "subresources":[{"subresource":"log","responseKind":{"group":"","version":"","kind":"Pod"},"verbs":["get"]},
			{"subresource":"scale","responseKind":{"group":"autoscaling","version":"v1","kind":"Scale"},"verbs":["get","patch"]},
			{"subresource":"status","responseKind":{"group":"","version":"","kind":"Pod"},"verbs":["get","update"]}]},
		{"resource":"componentstatuses","responseKind":{"group":"","version":"","kind":"ComponentStatus"},"scope":"Cluster","singularResource":"componentstatus","verbs":["get","list"]}
		],"freshness":"Current"}]}]}`
	widgets = `{"resource":"widgets","responseKind":{"group":"example.com","version":"v1","kind":"Widget"},"scope":"Cluster","singularResource":"widget","verbs":["get","list","watch"]}`
)

func allButStatuses(gr schema.GroupResource) bool { return gr.Resource != "componentstatuses" }

func newServer(t *testing.T, documents map[string]string) *discovery.Server {
	t.Helper()
	s, err := discovery.New(t.Context(), &record{documents: documents}, instant, allButStatuses)
	require.NoError(t, err)
	return s
}

// An answer is a complete response.
type answer struct {
	code   int
	header http.Header
	body   string
}

func ask(h http.Handler, path string, header ...string) answer {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return answer{code: w.Code, header: w.Header(), body: w.Body.String()}
}

// status returns the Status of an answer, which must be one.
func status(t *testing.T, a answer) metav1.Status {
	t.Helper()
	var s metav1.Status
	require.NoError(t, json.Unmarshal([]byte(a.body), &s))
	require.Equal(t, "Status", s.Kind)
	require.Equal(t, a.code, int(s.Code))
	return s
}

func TestOnlyReadingVerbsOfRecordedResourcesRemain(t *testing.T) {
	s := newServer(t, map[string]string{"/api": core})
	require.JSONEq(t, `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","metadata":{},"items":[{"metadata":{},"versions":[{"version":"v1","resources":[
		{"resource":"pods","responseKind":{"group":"","version":"","kind":"Pod"},"scope":"Namespaced","singularResource":"pod","verbs":["get","list","watch"],"shortNames":["po"],
		 "subresources":[{"subresource":"scale","responseKind":{"group":"autoscaling","version":"v1","kind":"Scale"},"verbs":["get"]},
			{"subresource":"status","responseKind":{"group":"","version":"","kind":"Pod"},"verbs":["get"]}]},
		{"resource":"componentstatuses","responseKind":{"group":"","version":"","kind":"ComponentStatus"},"scope":"Cluster","singularResource":"componentstatus","verbs":[]}
		],"freshness":"Current"}]}]}`, ask(s, "/api", "Accept", aggregated).body)
	require.JSONEq(t, `{"kind":"APIResourceList","groupVersion":"v1","resources":[
		{"name":"pods","singularName":"pod","namespaced":true,"kind":"Pod","verbs":["get","list","watch"],"shortNames":["po"]},
		{"name":"pods/scale","singularName":"","namespaced":true,"group":"autoscaling","version":"v1","kind":"Scale","verbs":["get"]},
		{"name":"pods/status","singularName":"","namespaced":true,"kind":"Pod","verbs":["get"]},
		{"name":"componentstatuses","singularName":"componentstatus","namespaced":false,"kind":"ComponentStatus","verbs":[]}]}`, ask(s, "/api/v1").body)
}

func TestResourcesAreKnownWithTheirVersionsWhetherRecordedOrNot(t *testing.T) {
	s := newServer(t, map[string]string{"/api": core, "/apis": `{"items":[{"metadata":{"name":"example.com"},"versions":[
		{"version":"v1","resources":[` + widgets + `]},{"version":"v1beta1","resources":[{"resource":"widgets","responseKind":{"group":"example.com","version":"v1beta1","kind":"OldWidget"},"scope":"Cluster"},
		{"resource":"orphans","responseKind":{"group":"","version":"","kind":""},"scope":"Cluster","subresources":[{"subresource":"sub"}]}]}]}]}`})
	pods := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	got, ok := s.Resource(pods)
	require.True(t, ok)
	require.Equal(t, discovery.Resource{GroupVersionResource: pods, Kind: schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, Namespaced: true, Recorded: true, Versions: []string{"v1"}, Subresources: []string{"scale", "status"}}, got)
	got, ok = s.Resource(pods.GroupVersion().WithResource("componentstatuses"))
	require.True(t, ok)
	require.False(t, got.Recorded)
	old := schema.GroupVersionResource{Group: "example.com", Version: "v1beta1", Resource: "widgets"}
	got, ok = s.Resource(old)
	require.True(t, ok)
	require.Equal(t, discovery.Resource{
		GroupVersionResource: old, Kind: old.GroupVersion().WithKind("OldWidget"), Recorded: true, Versions: []string{"v1", "v1beta1"},
	}, got)
	for _, unknown := range []schema.GroupVersionResource{{Version: "v1", Resource: "pods/log"}, {Version: "v2", Resource: "pods"}, {Group: "example.com", Version: "v1beta1", Resource: "orphans"}} {
		_, ok = s.Resource(unknown)
		require.False(t, ok, unknown)
	}
	require.NotContains(t, ask(s, "/apis/example.com/v1beta1").body, "orphans", "the legacy form has no entry for subresources without a resource")
	require.Contains(t, ask(s, "/apis", "Accept", aggregated).body, "orphans")
}

func TestTheAcceptHeaderIsParsed(t *testing.T) {
	s := newServer(t, map[string]string{"/apis": group("example.com", "v1", widgets)})
	const kind = "APIGroupDiscoveryList"
	for accept, want := range map[string]string{
		aggregated: kind,
		"application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList;profile=nopeer":        kind,
		`application/json; as=APIGroupDiscoveryList; v=v2; g=apidiscovery.k8s.io`:                    kind,
		"text/html, application/json;v=v2;g=apidiscovery.k8s.io;as=APIGroupDiscoveryList;q=0.5":      kind,
		"application/json,application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList":      kind, // as the real server does
		"*/*;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList":                                    kind,
		"application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json": "APIGroupList",
		"application/vnd.kubernetes.protobuf;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList":    "APIGroupList",
		"application/json;g=meta.k8s.io;v=v1;as=Table,application/json":                              "APIGroupList",
		"application/json;x=\"g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList\"":                 "APIGroupList",
		"application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryListX":                      "APIGroupList",
		"application/json": "APIGroupList", "*/*": "APIGroupList", "": "APIGroupList", ";;,=": "APIGroupList", "application/yaml": "APIGroupList",
	} {
		answer := ask(s, "/apis", "Accept", accept)
		require.Equal(t, http.StatusOK, answer.code, accept)
		var got metav1.TypeMeta
		require.NoError(t, json.Unmarshal([]byte(answer.body), &got))
		require.Equal(t, want, got.Kind, accept)
	}
}

func TestAggregatedDiscoveryIsNotSentTwice(t *testing.T) {
	documents := map[string]string{"/api": core, "/apis": group("example.com", "v1", widgets)}
	s := newServer(t, documents)
	first := ask(s, "/apis", "Accept", aggregated)
	tag := first.header.Get("ETag")
	require.Regexp(t, `^"[0-9A-F]{128}"$`, tag)
	again := ask(s, "/apis", "Accept", aggregated, "If-None-Match", tag)
	require.Equal(t, http.StatusNotModified, again.code)
	require.Empty(t, again.body)
	require.Equal(t, []string{tag, "Accept", "public"}, []string{again.header.Get("ETag"), again.header.Get("Vary"), again.header.Get("Cache-Control")})
	require.Equal(t, http.StatusOK, ask(s, "/apis", "If-None-Match", tag).code, "the legacy form has no ETag")
	require.Equal(t, http.StatusOK, ask(s, "/api", "Accept", aggregated, "If-None-Match", tag).code)

	documents["/apis"] = group("example.com", "v2", widgets)
	later := newServer(t, documents)
	require.Equal(t, http.StatusOK, ask(later, "/apis", "Accept", aggregated, "If-None-Match", tag).code)
}

func TestDiscoveryOfTheBetaVersionIsServedAsTheStableOne(t *testing.T) {
	s := newServer(t, map[string]string{"/apis": `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2beta1","metadata":{},"items":[
		{"metadata":{"name":"example.com","creationTimestamp":null},"versions":[{"version":"v1","resources":[` + widgets + `],"freshness":"Current"}]}]}`})
	require.JSONEq(t, group("example.com", "v1", widgets), ask(s, "/apis", "Accept", aggregated).body)
}

func TestWithoutRecordedDiscoveryTheStreamsAreUsed(t *testing.T) {
	source := &record{
		documents: map[string]string{"/api": `{"kind":"APIVersions","versions":["v1"]}`, "/apis": `{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"apps"}]}`},
		streams: []history.Resource{
			{Version: "v1", Resource: "pods", Kind: "Pod", Singular: "pod", Verbs: []string{"list", "watch"}, Namespaced: true},
			{Group: "example.com", Version: "v1", Resource: "widgets", Kind: "Widget", Singular: "widget", Verbs: []string{"list", "watch"}},
			{Group: "example.com", Version: "v1", Resource: "gadgets", Kind: "Gadget", Singular: "gadget", Verbs: []string{"list", "watch"}},
		},
	}
	s, err := discovery.New(t.Context(), source, instant, allButStatuses)
	require.NoError(t, err)
	require.JSONEq(t, `{"kind":"APIResourceList","groupVersion":"v1","resources":[
		{"name":"pods","singularName":"pod","namespaced":true,"kind":"Pod","verbs":["list","watch"]}]}`, ask(s, "/api/v1").body)
	require.JSONEq(t, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"example.com/v1","resources":[
		{"name":"widgets","singularName":"widget","namespaced":false,"kind":"Widget","verbs":["list","watch"]},
		{"name":"gadgets","singularName":"gadget","namespaced":false,"kind":"Gadget","verbs":["list","watch"]}]}`, ask(s, "/apis/example.com/v1").body)
	require.JSONEq(t, `{"kind":"APIVersions","versions":["v1"],"serverAddressByClientCIDRs":[{"clientCIDR":"0.0.0.0/0","serverAddress":"example.com"}]}`, ask(s, "/api").body)
}

func TestTheErrorNamesAMissingDocument(t *testing.T) {
	s := newServer(t, map[string]string{"/api": core})
	for path, want := range map[string]string{
		"/version": "the version of the API server is not on record", "/openapi/v3": "OpenAPI v3 is not on record at that instant", "/openapi/v2": "OpenAPI v2 is not on record; request /openapi/v3",
	} {
		require.True(t, s.Handles(path), path)
		got := status(t, ask(s, path))
		require.Equal(t, want, got.Message)
		require.Equal(t, metav1.StatusReasonNotFound, got.Reason)
	}
	s = newServer(t, map[string]string{"/openapi/v3": `{"paths":{"api/v1":{"serverRelativeURL":"/openapi/v3/api/v1?hash=AAA"}}}`})
	require.Equal(t, "the OpenAPI document of api/v1 is not on record at that instant", status(t, ask(s, "/openapi/v3/api/v1")).Message)
}

func TestAddressesInTheIndexOfOpenAPIKeepThePrefixOfTheURL(t *testing.T) {
	s := newServer(t, map[string]string{"/openapi/v3": `{"paths":{"apis/metrics.k8s.io/v1":{"serverRelativeURL":"/elsewhere/v1?hash=A%2BB"},
		"apis/plain/v1":{"serverRelativeURL":"https://elsewhere/openapi/v3/apis/plain/v1"}}}`})
	require.JSONEq(t, `{"paths":{"apis/metrics.k8s.io/v1":{"serverRelativeURL":"/openapi/v3/apis/metrics.k8s.io/v1?hash=A%2BB"},
		"apis/plain/v1":{"serverRelativeURL":"/openapi/v3/apis/plain/v1"}}}`, ask(s, "/openapi/v3").body)
}

func TestAHashOfALaterDocumentRedirectsToTheRecordedDocument(t *testing.T) {
	s := newServer(t, map[string]string{
		"/openapi/v3": `{"paths":{"api/v1":{"serverRelativeURL":"/openapi/v3/api/v1?hash=NEWER"}}}`, "/openapi/v3/api/v1": `{"openapi":"3.0.0"}`,
	})
	ahead := ask(s, "/openapi/v3/api/v1?hash=NEWER")
	require.Equal(t, http.StatusMovedPermanently, ahead.code)
	require.Equal(t, "no-cache, private", ahead.header.Get("Cache-Control"))
	there := ask(s, "/openapi/v3/api/v1"+ahead.header.Get("Location"))
	require.Equal(t, http.StatusOK, there.code)
	require.Equal(t, `{"openapi":"3.0.0"}`, there.body)
	require.Equal(t, "public, immutable", there.header.Get("Cache-Control"))
	require.Equal(t, "?hash="+strings.Trim(there.header.Get("ETag"), `"`), ahead.header.Get("Location"))
}

func TestAVersionWhoseServerDidNotAnswerIsUnavailable(t *testing.T) {
	stale := strings.Replace(group("metrics.k8s.io", "v1", widgets), "Current", "Stale", 1)
	s := newServer(t, map[string]string{"/apis": stale})
	require.JSONEq(t, stale, ask(s, "/apis", "Accept", aggregated).body)
	require.Equal(t, metav1.StatusReasonServiceUnavailable, status(t, ask(s, "/apis/metrics.k8s.io/v1")).Reason)
	require.Equal(t, http.StatusOK, ask(s, "/apis/metrics.k8s.io").code)
}

func TestOddPathsAreNotHandled(t *testing.T) {
	s := newServer(t, map[string]string{"/api": core, "/apis": group("example.com", "v1", widgets)})
	for _, path := range []string{"/", "", "/api/v1/pods", "/apis/example.com/v1/widgets", "/apis/example.com//v1", "/apix", "/apisx", "/openapi", "/openapi/v3x", "/openapi/v2/x", "/healthz/", "/healthzx", "/metrics", "/version/x"} {
		require.False(t, s.Handles(path), path)
		require.Equal(t, http.StatusNotFound, ask(s, "http://host"+path).code, path)
	}
	for _, path := range []string{"/apis//v1", "/apis/%2e%2e/v1", "/api//", "/apis/example.com/v2", "/openapi/v3/", "/openapi/v3/apis/x/v1"} {
		require.Equal(t, http.StatusNotFound, ask(s, "http://host"+path).code, path)
	}
}

func TestAFailureOfTheDatabaseIsAnError(t *testing.T) {
	source := &record{documents: map[string]string{
		"/api": core, "/openapi/v3": `{"paths":{"api/v1":{"serverRelativeURL":"/openapi/v3/api/v1?hash=AAA"}}}`, "/openapi/v3/api/v1": `{}`,
	}}
	s, err := discovery.New(t.Context(), source, instant, allButStatuses)
	require.NoError(t, err)
	source.failure = errors.New("the database is away")
	require.Equal(t, metav1.StatusReasonInternalError, status(t, ask(s, "/openapi/v3/api/v1")).Reason)
	_, err = discovery.New(t.Context(), source, instant, allButStatuses)
	require.ErrorIs(t, err, source.failure)
	_, err = discovery.New(t.Context(), &record{documents: map[string]string{"/apis": `[`}}, instant, allButStatuses)
	require.ErrorContains(t, err, "discovery at /apis, as recorded at 2026-04-05T06:07:08Z")
	_, err = discovery.New(t.Context(), &record{documents: map[string]string{"/api": core, "/openapi/v3": `{"paths":{"x":{"serverRelativeURL":":"}}}`}}, instant, allButStatuses)
	require.ErrorContains(t, err, "address of x in the index")
}
