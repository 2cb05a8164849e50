package kube

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// offer is a server's aggregated discovery: the resources of each "group/version" ("v1" for core). A nil list is a stale
// version. The versions of a group are sorted by text, descending.
type offer map[string][]string

// document returns the aggregated document of the core group, or of all other groups.
func (o offer) document(core bool) string {
	groups := map[string][]string{}
	for _, gv := range slices.Backward(slices.Sorted(maps.Keys(o))) {
		parsed, _ := schema.ParseGroupVersion(gv)
		if (parsed.Group == "") != core {
			continue
		}
		groups[parsed.Group] = append(groups[parsed.Group], o.version(parsed))
	}
	var items []string
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		items = append(items, fmt.Sprintf(`{"metadata":{"name":%q},"versions":[%s]}`, name, strings.Join(groups[name], ",")))
	}
	return `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","items":[` + strings.Join(items, ",") + `]}`
}

func (o offer) version(gv schema.GroupVersion) string {
	if o[gv.String()] == nil {
		return fmt.Sprintf(`{"version":%q,"freshness":"Stale"}`, gv.Version)
	}
	var resources []string
	for _, name := range o[gv.String()] {
		name, verbs, ok := strings.Cut(name, ":")
		if !ok {
			verbs = "get,list,watch"
		}
		resources = append(resources, fmt.Sprintf(`{"resource":%q,"responseKind":{"group":%q,"version":%q,"kind":%q},"scope":"Namespaced","verbs":["%s"],"subresources":[{"subresource":"status","responseKind":{"kind":"X"},"verbs":["get"]}]}`,
			name, gv.Group, gv.Version, title(name), strings.ReplaceAll(verbs, ",", `","`)))
	}
	return fmt.Sprintf(`{"version":%q,"freshness":"Current","resources":[%s]}`, gv.Version, strings.Join(resources, ","))
}

// offering is a server with a changeable offer. other answers all other paths.
type offering struct {
	mu     sync.Mutex
	offer  offer
	other  http.HandlerFunc
	broken int // how many answers of discovery still fail
}

func (o *offering) set(next offer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.offer = next
}

func (o *offering) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/api" && r.URL.Path != "/apis" {
		if o.other != nil {
			o.other(w, r)
			return
		}
		answer(404, "text/plain", "404 page not found")(w, r)
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.broken > 0 {
		o.broken--
		answer(503, "text/plain", "not now")(w, r)
		return
	}
	answer(200, "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", o.offer.document(r.URL.Path == "/api"))(w, r)
}

func names(resources []Resource) []string {
	var all []string
	for _, r := range resources {
		all = append(all, r.String())
	}
	return all
}

func TestEachResourceIsFoundOnceInTheVersionInUseOrThePreferredOne(t *testing.T) {
	client := serve(t, (&offering{offer: offer{
		"v1":                   {"pods", "events", "bindings:create", "componentstatuses:get,list"},
		"events.k8s.io/v1":     {"events"},
		"autoscaling/v2":       {"hpas"},
		"autoscaling/v1":       {"hpas", "olds"},
		"extensions/v1beta1":   {"ingresses", "deployments"},
		"networking.k8s.io/v1": {"ingresses"},
	}}).ServeHTTP)
	d, err := client.Discover(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, []string{"v1 events", "v1 pods", "autoscaling/v2 hpas", "autoscaling/v1 olds", "extensions/v1beta1 deployments", "networking.k8s.io/v1 ingresses"}, names(d.Resources))
	require.Equal(t, Resource{Version: "v1", Name: "pods", Kind: "Pods", Namespaced: true, Verbs: []string{"get", "list", "watch"}}, d.Resources[1])
	var left []string
	for _, c := range d.Cohabiting {
		left = append(left, c.Resource.String()+" for "+c.Kept.String())
	}
	require.Equal(t, []string{"events.k8s.io/v1 events for events", "extensions/v1beta1 ingresses for ingresses.networking.k8s.io"}, left)
	require.Len(t, d.Unwatchable, 2)
	require.Equal(t, "the server does not offer to list it", d.Unwatchable[0].Reason)
	require.Equal(t, "the server does not offer to watch it", d.Unwatchable[1].Reason)

	d, err = client.Discover(t.Context(), map[schema.GroupResource]string{{Group: "autoscaling", Resource: "hpas"}: "v1", {Group: "autoscaling", Resource: "olds"}: "v0"})
	require.NoError(t, err)
	require.Contains(t, names(d.Resources), "autoscaling/v1 hpas")
	require.Contains(t, names(d.Resources), "autoscaling/v1 olds")
}

func TestAStaleGroupIsFailedAndNotGone(t *testing.T) {
	client := serve(t, (&offering{offer: offer{
		"v1":                     {"pods"},
		"metrics.k8s.io/v1beta1": nil,
		// The preferred one of two cohabiting resources may belong to the failed group.
		"networking.k8s.io/v1": nil,
		"extensions/v1beta1":   {"ingresses"},
	}}).ServeHTTP)
	d, err := client.Discover(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, []string{"v1 pods"}, names(d.Resources))
	require.Len(t, d.Failed, 2)
	require.ErrorContains(t, d.Failed[schema.GroupVersion{Group: "metrics.k8s.io", Version: "v1beta1"}], "stale")
	require.Len(t, d.Cohabiting, 1)
}

func TestDiscoveryOfAnOldServerIsReadGroupByGroup(t *testing.T) {
	documents := map[string]string{
		"/api":  `{"kind":"APIVersions","versions":["v1"]}`,
		"/apis": `{"kind":"APIGroupList","groups":[{"name":"apps","versions":[{"groupVersion":"apps/v1","version":"v1"}],"preferredVersion":{"groupVersion":"apps/v1","version":"v1"}},{"name":"bad","versions":[{"groupVersion":"bad/v1","version":"v1"}],"preferredVersion":{"groupVersion":"bad/v1","version":"v1"}}]}`,
		"/api/v1": `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"pods","kind":"Pod","namespaced":true,"verbs":["list","watch"]},
			{"name":"pods/status","kind":"Pod","namespaced":true,"verbs":["get"]}]}`,
		"/apis/apps/v1": `{"kind":"APIResourceList","groupVersion":"apps/v1","resources":[{"name":"deployments","singularName":"deployment","kind":"Deployment","namespaced":true,"verbs":["list","watch"],"shortNames":["deploy"]}]}`,
	}
	client := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if text, ok := documents[r.URL.Path]; ok {
			answer(200, "application/json", text)(w, r)
			return
		}
		answer(503, "text/plain", "service unavailable")(w, r)
	})
	d, err := client.Discover(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, []string{"v1 pods", "apps/v1 deployments"}, names(d.Resources))
	require.Equal(t, []string{"deploy"}, d.Resources[1].ShortNames)
	require.Contains(t, d.Failed, schema.GroupVersion{Group: "bad", Version: "v1"})
}

func TestADiscoveryThatFailsAsAWholeIsAnError(t *testing.T) {
	for name, test := range map[string]struct {
		handler http.HandlerFunc
		want    string
	}{
		"HTML":    {answer(200, "text/html", "<html>log in"), "<html>log in"},
		"503":     {answer(503, "text/plain", "not now"), "discovery of http://127.0.0.1"},
		"nothing": {(&offering{offer: offer{}}).ServeHTTP, "the server offers no resources at all"},
		"404":     {answer(404, "text/plain", "no"), "could not find"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := serve(t, test.handler).Discover(t.Context(), nil)
			require.ErrorContains(t, err, test.want)
		})
	}
}
