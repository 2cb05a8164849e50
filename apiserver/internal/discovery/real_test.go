package discovery_test

import (
	"crypto/sha512"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientdiscovery "k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/kube-openapi/pkg/handler3"

	"github.com/kuberewind/kuberewind/apiserver/internal/discovery"
	"github.com/kuberewind/kuberewind/internal/controlplane"
	"github.com/kuberewind/kuberewind/kube"
)

// prefix is the root of the instant. Clients must keep it.
const prefix = "/clusters/0b5a4d1c/at/seq:7"

const openAPI = "/openapi/v3"

// definitions are two custom resources of one group, one of them in two versions, and an API service that never answers.
const definitions = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, shortNames: [wd], categories: [all, toys]}
  versions:
  - {name: v1beta1, served: true, storage: false, schema: {openAPIV3Schema: {type: object}}}
  - name: v1
    served: true
    storage: true
    subresources: {status: {}, scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}}
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {replicas: {type: integer, description: how many there should be}}}}}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.example.com}
spec:
  group: example.com
  scope: Cluster
  names: {plural: gadgets, singular: gadget, kind: Gadget}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1beta1.metrics.k8s.io}
spec: {group: metrics.k8s.io, version: v1beta1, groupPriorityMinimum: 100, versionPriority: 100, insecureSkipTLSVerify: true, service: {name: metrics-server, namespace: kube-system}}
`

// world is a real API server, and this package's server with the documents that the recorder fetches from it.
type world struct {
	plane    *controlplane.ControlPlane
	client   *http.Client // of the real server; it follows no redirect
	ours     *httptest.Server
	recorded *record

	mu    sync.Mutex // protects asked
	asked []string   // requests to our server: path and Accept header
}

// TestOnARealServer holds the tests that need a real API server, which is started once.
func TestOnARealServer(t *testing.T) {
	w := &world{plane: controlplane.ForTest(t, controlplane.Options{}), recorded: &record{documents: map[string]string{}}}
	transport, err := rest.TransportFor(w.plane.Config())
	require.NoError(t, err)
	w.client = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	require.Contains(t, w.kubectl(t, definitions, "--kubeconfig", w.kubeconfig(t), "apply", "-f", "-"), "widgets.example.com created")
	w.record(t)
	s, err := discovery.New(t.Context(), w.recorded, instant, inTheRecord)
	require.NoError(t, err)
	w.serve(t, s)

	t.Run("every path of discovery has the answer of the real server, except for the documented changes", w.discovery)
	t.Run("unserved paths are refused as by the real server", w.refusals)
	t.Run("OpenAPI documents are the real ones, with their hashes", w.openAPI)
	t.Run("client-go finds the same groups and resources, aggregated and legacy", w.clientGo)
	t.Run("client-go reads OpenAPI behind the prefix", w.clientOpenAPI)
	t.Run("kubectl lists resources, explains them and prints the version", w.realKubectl)
}

// inTheRecord reports whether the record has a resource. It omits some, as a recorder can.
func inTheRecord(gr schema.GroupResource) bool {
	return gr.Resource != "componentstatuses" && gr != schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}
}

func (w *world) kubeconfig(t *testing.T) string {
	path, err := w.plane.Kubeconfig()
	require.NoError(t, err)
	return path
}

func (w *world) kubectl(t *testing.T, input string, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), w.plane.Kubectl(), append([]string{"--cache-dir", t.TempDir()}, args...)...)
	command.Stdin = strings.NewReader(input)
	out, err := command.CombinedOutput()
	require.NoError(t, err, string(out))
	return string(out)
}

// record fetches the documents as the recorder does, once the server has published the definitions and repeats its answers.
func (w *world) record(t *testing.T) {
	config := rest.CopyConfig(w.plane.Config())
	config.QPS = -1
	client, err := kube.NewClient(config, kube.Options{})
	require.NoError(t, err)
	t.Cleanup(client.Close)
	have := map[string]string{}
	require.Eventually(t, func() bool {
		documents, err := client.Documents(t.Context(), have)
		changed := err != nil
		for _, d := range documents {
			if d.Body != nil {
				w.recorded.documents[d.Path], have[d.Path], changed = string(d.Body), d.Hash, true
			}
		}
		return !changed && w.published()
	}, 5*time.Minute, 100*time.Millisecond)
}

// published reports whether the documents contain everything that the server serves.
func (w *world) published() bool {
	documents := w.recorded.documents
	groups, schema := documents["/apis"], documents[openAPI+"/apis/example.com/v1"]
	return strings.Contains(groups, "gadgets") && strings.Contains(groups, `"Stale"`) && strings.Contains(schema, "Gadget") && strings.Contains(schema, "Widget") &&
		documents[openAPI+"/apis/example.com/v1beta1"] != "" && documents[openAPI+"/apis/apps/v1"] != "" && documents[openAPI+"/api/v1"] != "" && w.hashed()
}

// hashed reports whether the index has caught up with the documents, so that it has their hashes. Until then, the real
// server redirects, too.
func (w *world) hashed() bool {
	for path, body := range w.recorded.documents {
		if strings.HasPrefix(path, openAPI+"/") && !strings.Contains(w.recorded.documents[openAPI], fmt.Sprintf("%X", sha512.Sum512([]byte(body)))) {
			return false
		}
	}
	return true
}

func (w *world) serve(t *testing.T, s *discovery.Server) {
	w.ours = httptest.NewServer(http.StripPrefix(prefix, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		w.asked = append(w.asked, r.URL.Path+" "+r.Header.Get("Accept"))
		w.mu.Unlock()
		s.ServeHTTP(rw, r)
	})))
	t.Cleanup(w.ours.Close)
}

// requests returns the requests to our server since its last call.
func (w *world) requests() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	asked := w.asked
	w.asked = nil
	return asked
}

// both asks the real server and our server.
func (w *world) both(t *testing.T, method, path string, header ...string) (theirs, ours answer) {
	t.Helper()
	return w.ask(t, method, w.plane.Config().Host+path, header), w.ask(t, method, w.ours.URL+prefix+path, header)
}

func (w *world) ask(t *testing.T, method, address string, header []string) answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, address, nil)
	require.NoError(t, err)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	response, err := w.client.Do(r)
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	if moved, err := response.Location(); err == nil { // whole
		response.Header.Set("Location", moved.String())
	}
	return answer{code: response.StatusCode, header: response.Header, body: string(body)}
}

func (w *world) discovery(t *testing.T) {
	for _, root := range []string{"/api", "/apis"} {
		theirs, ours := w.both(t, http.MethodGet, root, "Accept", aggregated)
		for _, name := range []string{"Content-Type", "Vary", "Cache-Control"} {
			require.Equal(t, theirs.header.Get(name), ours.header.Get(name), name)
		}
		require.Equal(t, changed(t, theirs.body), parsed(t, ours.body), root)
	}
	paths := []string{"/api", "/api/", "/apis", "/apis/", "/version", "/version/", "/apis/metrics.k8s.io"}
	for _, path := range slices.Sorted(maps.Keys(w.recorded.documents)) {
		if gv, ok := strings.CutPrefix(path, openAPI); ok && strings.HasPrefix(gv, "/api") {
			paths = append(paths, gv, gv+"/") // /api/v1, /apis/G, /apis/G/V
		}
	}
	require.Greater(t, len(paths), 80)
	for _, path := range paths {
		theirs, ours := w.both(t, http.MethodGet, path, "Accept", "application/json")
		require.Equal(t, http.StatusOK, theirs.code, path)
		require.Equal(t, http.StatusOK, ours.code, path)
		for _, name := range []string{"Content-Type", "Cache-Control", "ETag"} {
			require.Equal(t, theirs.header.Get(name), ours.header.Get(name), path)
		}
		require.Equal(t, anywhere(changed(t, theirs.body)), anywhere(parsed(t, ours.body)), path)
	}
}

// anywhere replaces the server's address in an answer of /api.
func anywhere(answer any) any {
	if addresses, ok := answer.(map[string]any)["serverAddressByClientCIDRs"].([]any); ok {
		addresses[0].(map[string]any)["serverAddress"] = "here"
	}
	return answer
}

func parsed(t *testing.T, text string) any {
	t.Helper()
	var value any
	require.NoError(t, json.Unmarshal([]byte(text), &value), text)
	return value
}

// changed applies the documented changes to an answer of the real server.
func changed(t *testing.T, text string) any {
	t.Helper()
	answer := parsed(t, text).(map[string]any)
	switch answer["kind"] {
	case "APIGroupDiscoveryList":
		for _, group := range answer["items"].([]any) {
			name, _, _ := unstructured.NestedString(group.(map[string]any), "metadata", "name")
			for _, version := range group.(map[string]any)["versions"].([]any) {
				resources, _ := version.(map[string]any)["resources"].([]any)
				for _, r := range resources {
					r := r.(map[string]any)
					trim(r, name, r["resource"].(string))
					subresources, _ := r["subresources"].([]any)
					if r["subresources"] = readable(subresources, "subresource", len(r["verbs"].([]any)) > 0); len(r["subresources"].([]any)) == 0 {
						delete(r, "subresources")
					}
				}
			}
		}
	case "APIResourceList":
		group, _, _ := strings.Cut(answer["groupVersion"].(string), "/")
		if group == "v1" {
			group = ""
		}
		resources := []any{}
		for _, r := range answer["resources"].([]any) {
			name, subresource, _ := strings.Cut(r.(map[string]any)["name"].(string), "/")
			if subresource != "" {
				resources = append(resources, readable([]any{r}, "name", inTheRecord(schema.GroupResource{Group: group, Resource: name}))...)
				continue
			}
			delete(r.(map[string]any), "storageVersionHash")
			trim(r.(map[string]any), group, name)
			resources = append(resources, r)
		}
		if group == "example.com" { // the real server's order is random
			slices.SortStableFunc(resources, func(a, b any) int { // the subresources of one resource have an order
				first, _, _ := strings.Cut(a.(map[string]any)["name"].(string), "/")
				second, _, _ := strings.Cut(b.(map[string]any)["name"].(string), "/")
				return strings.Compare(first, second)
			})
		}
		answer["resources"] = resources
	}
	return answer
}

// readable returns the real server's subresources that clients can read. member is the member with their names.
func readable(all []any, member string, recorded bool) []any {
	left := []any{}
	for _, s := range all {
		s := s.(map[string]any)
		name := s[member].(string)
		if recorded && (strings.HasSuffix(name, "status") || strings.HasSuffix(name, "scale")) && slices.Contains(s["verbs"].([]any), any("get")) {
			s["verbs"] = []any{"get"}
			left = append(left, s)
		}
	}
	return left
}

// trim removes the verbs that write from an entry of the real server.
func trim(entry map[string]any, group, resource string) {
	verbs := []any{}
	for _, verb := range entry["verbs"].([]any) {
		if inTheRecord(schema.GroupResource{Group: group, Resource: resource}) && slices.Contains([]any{"get", "list", "watch"}, verb) {
			verbs = append(verbs, verb)
		}
	}
	slices.SortFunc(verbs, func(a, b any) int { return strings.Compare(a.(string), b.(string)) })
	entry["verbs"] = verbs
}

func (w *world) refusals(t *testing.T) {
	for _, path := range []string{
		"/api/v2", "/apis/nope", "/apis/nope/v1", "/apis/apps/v9", "/apis/example.com/v9", "/apis/metrics.k8s.io/v9", "/openapi", "/openapi/v3/", "/openapi/v3/apis/nope/v1",
		"/readyz/", "/swagger.json", "/healthz", "/livez", "/readyz", "/livez/etcd", "/healthz/ping",
	} {
		theirs, ours := w.both(t, http.MethodGet, path, "Accept", "application/json")
		require.Equal(t, theirs.code, ours.code, path)
		require.Equal(t, strings.TrimSpace(theirs.body), strings.TrimSpace(ours.body), path)
		require.Equal(t, theirs.header.Get("Content-Type"), ours.header.Get("Content-Type"), path)
	}
	theirs, ours := w.both(t, http.MethodPost, "/version")
	require.Equal(t, parsed(t, theirs.body), parsed(t, ours.body))
	require.Equal(t, http.StatusMethodNotAllowed, ours.code)
	theirs, ours = w.both(t, http.MethodGet, "/apis/metrics.k8s.io/v1beta1")
	require.Equal(t, http.StatusServiceUnavailable, theirs.code)
	require.Equal(t, "the extension API server of metrics.k8s.io/v1beta1 did not answer at that instant", status(t, ours).Message)
	_, ours = w.both(t, http.MethodGet, "/livez?verbose")
	require.Equal(t, "[+]ping ok\nlivez check passed\n", ours.body)
}

func (w *world) openAPI(t *testing.T) {
	theirs, ours := w.both(t, http.MethodGet, openAPI)
	index := theirs.body
	require.Equal(t, parsed(t, index), parsed(t, ours.body))
	var names handler3.OpenAPIV3Discovery
	require.NoError(t, json.Unmarshal([]byte(index), &names))
	for name, entry := range names.Paths {
		theirs, ours := w.both(t, http.MethodGet, entry.ServerRelativeURL)
		require.Equal(t, theirs.body, ours.body, name)
		for _, header := range []string{"Content-Type", "ETag", "Vary", "Cache-Control"} {
			require.Equal(t, theirs.header.Get(header), ours.header.Get(header), name)
		}
		expires, err := http.ParseTime(ours.header.Get("Expires"))
		require.NoError(t, err)
		require.WithinRange(t, expires, time.Now().AddDate(1, 0, -1), time.Now().AddDate(1, 0, 1))
	}
	apps := openAPI + "/apis/apps/v1"
	theirs, ours = w.both(t, http.MethodGet, apps+"?hash=wrong")
	require.Equal(t, http.StatusMovedPermanently, theirs.code)
	require.Equal(t, http.StatusMovedPermanently, ours.code)
	moved := strings.TrimPrefix(theirs.header.Get("Location"), w.plane.Config().Host)
	require.Equal(t, w.ours.URL+prefix+moved, ours.header.Get("Location"))
	for _, header := range [][]string{{"Accept", "text/html"}, {"If-None-Match", ours.header.Get("ETag")}, {"Accept", "application/com.github.proto-openapi.spec.v3@v1.0+protobuf"}} {
		theirs, ours := w.both(t, http.MethodGet, apps, header...)
		require.Equal(t, theirs.code, ours.code, header)
		require.Equal(t, theirs.header.Get("Content-Type"), ours.header.Get("Content-Type"), header)
		require.Equal(t, theirs.body, ours.body, header)
	}
}

// config returns the client-go configuration for our server.
func (w *world) config() *rest.Config { return &rest.Config{Host: w.ours.URL + prefix, QPS: -1} }

func (w *world) clientGo(t *testing.T) {
	live, err := clientdiscovery.NewDiscoveryClientForConfig(w.plane.Config())
	require.NoError(t, err)
	past, err := clientdiscovery.NewDiscoveryClientForConfig(w.config())
	require.NoError(t, err)
	for _, legacy := range []bool{false, true} {
		live.UseLegacyDiscovery, past.UseLegacyDiscovery = legacy, legacy
		w.requests()
		wantGroups, want, err := live.ServerGroupsAndResourcesWithContext(t.Context())
		require.True(t, clientdiscovery.IsGroupDiscoveryFailedError(err), err)
		gotGroups, got, err := past.ServerGroupsAndResourcesWithContext(t.Context())
		require.True(t, clientdiscovery.IsGroupDiscoveryFailedError(err), err)
		require.Contains(t, err.Error(), "metrics.k8s.io/v1beta1")
		for _, request := range w.requests() {
			require.Equal(t, legacy, !strings.HasSuffix(request, aggregated), request)
		}
		require.Equal(t, wantGroups, gotGroups)
		require.Equal(t, kinds(want), kinds(got))
		require.Contains(t, kinds(got), "example.com/v1beta1 widgets Widget true wd")
	}
	want, err := live.ServerVersion()
	require.NoError(t, err)
	got, err := past.ServerVersion()
	require.NoError(t, err)
	require.Equal(t, want, got)
}

// kinds returns the resources of discovery, without subresources.
func kinds(lists []*metav1.APIResourceList) []string {
	var all []string
	for _, list := range lists {
		for _, r := range list.APIResources {
			if !strings.Contains(r.Name, "/") {
				all = append(all, fmt.Sprintf("%s %s %s %t %s", list.GroupVersion, r.Name, r.Kind, r.Namespaced, strings.Join(r.ShortNames, ",")))
			}
		}
	}
	slices.Sort(all)
	return all
}

func (w *world) clientOpenAPI(t *testing.T) {
	past, err := clientdiscovery.NewDiscoveryClientForConfig(w.config())
	require.NoError(t, err)
	paths, err := past.OpenAPIV3().Paths()
	require.NoError(t, err)
	w.requests()
	schema, err := paths["apis/example.com/v1"].Schema("application/json")
	require.NoError(t, err)
	require.Equal(t, w.recorded.documents[openAPI+"/apis/example.com/v1"], string(schema))
	require.Equal(t, []string{openAPI + "/apis/example.com/v1 application/json"}, w.requests())
	moved, err := past.RESTClient().Get().AbsPath(openAPI, "apis", "apps", "v1").Param("hash", "old").DoRaw(t.Context())
	require.NoError(t, err)
	require.Equal(t, w.recorded.documents[openAPI+"/apis/apps/v1"], string(moved))
}

func (w *world) realKubectl(t *testing.T) {
	server := "--server=" + w.ours.URL + prefix
	require.Contains(t, w.kubectl(t, "", server, "explain", "widgets.spec.replicas"), "how many there should be")
	listed := w.kubectl(t, "", server, "api-resources", "--verbs=list,watch", "--api-group=example.com", "-o", "name")
	require.ElementsMatch(t, []string{"gadgets.example.com", "widgets.example.com"}, strings.Fields(listed))
	require.Contains(t, w.kubectl(t, "", server, "version"), "Server Version: v1.")
}
