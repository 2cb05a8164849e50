package resource

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
)

// ApiHost is the host in URLs that never reach a network: the record answers them.
const ApiHost = "http://record.invalid"

// RoundTrip answers client-go's discovery, /api and /apis, and nothing else. So names have the same meaning as in kubectl.
func (c *Catalog) RoundTrip(request *http.Request) (*http.Response, error) {
	switch request.URL.Path {
	case "/api":
		return c.discoveryOf(request, true)
	case "/apis":
		return c.discoveryOf(request, false)
	}
	return nil, fmt.Errorf("%s is not discovery", request.URL.Path)
}

// discoveryOf returns the aggregated discovery of the core group, or of all other groups. It has the recorded resources,
// each in one version.
func (c *Catalog) discoveryOf(request *http.Request, core bool) (*http.Response, error) {
	list := apidiscovery.APIGroupDiscoveryList{TypeMeta: metav1.TypeMeta{APIVersion: apidiscovery.SchemeGroupVersion.String(), Kind: "APIGroupDiscoveryList"}}
	for _, r := range c.Resources {
		if (r.Group == "") != core {
			continue
		}
		version := versionOf(groupOf(&list, r.Group), r.Version)
		scope := apidiscovery.ScopeCluster
		if r.Namespaced {
			scope = apidiscovery.ScopeNamespace
		}
		version.Resources = append(version.Resources, apidiscovery.APIResourceDiscovery{
			Resource: r.Resource, SingularResource: r.Singular, ShortNames: r.ShortNames, Categories: r.Categories, Scope: scope,
			ResponseKind: &metav1.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: r.Kind},
			Verbs:        []string{"get", "list"},
		})
	}
	body, err := json.Marshal(list)
	if err != nil {
		return nil, err
	}
	return Respond(request, http.StatusOK, "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", body), nil
}

func groupOf(list *apidiscovery.APIGroupDiscoveryList, name string) *apidiscovery.APIGroupDiscovery {
	for i := range list.Items {
		if list.Items[i].Name == name {
			return &list.Items[i]
		}
	}
	list.Items = append(list.Items, apidiscovery.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: name}})
	return &list.Items[len(list.Items)-1]
}

func versionOf(group *apidiscovery.APIGroupDiscovery, name string) *apidiscovery.APIVersionDiscovery {
	for i := range group.Versions {
		if group.Versions[i].Version == name {
			return &group.Versions[i]
		}
	}
	group.Versions = append(group.Versions, apidiscovery.APIVersionDiscovery{Version: name, Freshness: apidiscovery.DiscoveryFreshnessCurrent})
	return &group.Versions[len(group.Versions)-1]
}

// Respond returns an HTTP response with a body.
func Respond(request *http.Request, code int, contentType string, body []byte) *http.Response {
	return &http.Response{
		Status: http.StatusText(code), StatusCode: code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {contentType}}, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)), Request: request,
	}
}

// orderedDiscovery returns resources in the order of their groups, like kubectl's own cache. client-go returns the resources
// of aggregated discovery in the order of a map.
type orderedDiscovery struct {
	discovery.CachedDiscoveryInterface
}

// ServerGroupsAndResources reads group by group.
func (d orderedDiscovery) ServerGroupsAndResources() ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	return discovery.ServerGroupsAndResources(d)
}

// ServerPreferredResources reads group by group.
func (d orderedDiscovery) ServerPreferredResources() ([]*metav1.APIResourceList, error) {
	return discovery.ServerPreferredResources(d)
}
