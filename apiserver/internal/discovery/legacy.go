package discovery

import (
	"fmt"
	"net/http"
	"slices"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kuberewind/kuberewind/apiserver/internal/wire"
)

// serveLegacyVersions answers /api.
func (s *Server) serveLegacyVersions(w http.ResponseWriter, r *http.Request) {
	versions := &metav1.APIVersions{
		TypeMeta:                   metav1.TypeMeta{Kind: "APIVersions"}, // no version, because Kubernetes 1.1 had none
		Versions:                   []string{},
		ServerAddressByClientCIDRs: []metav1.ServerAddressByClientCIDR{{ClientCIDR: "0.0.0.0/0", ServerAddress: r.Host}},
	}
	for _, group := range s.core.list.Items {
		for _, version := range group.Versions {
			versions.Versions = append(versions.Versions, version.Version)
		}
	}
	wire.Value(w, http.StatusOK, versions)
}

// serveGroups answers /apis.
func (a *aggregated) serveGroups(w http.ResponseWriter, _ *http.Request) {
	groups := &metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: []metav1.APIGroup{}}
	for _, group := range a.list.Items {
		groups.Groups = append(groups.Groups, legacyGroup(group))
	}
	wire.Value(w, http.StatusOK, groups)
}

// serveGroup answers /apis/G.
func (a *aggregated) serveGroup(name string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		group, ok := a.group(name)
		if !ok {
			wire.Unserved(w)
			return
		}
		legacy := legacyGroup(group)
		legacy.TypeMeta = metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}
		wire.Value(w, http.StatusOK, legacy)
	}
}

// serveVersion answers /api/V and /apis/G/V.
func (a *aggregated) serveVersion(name, version string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		group, ok := a.group(name)
		if !ok {
			wire.Unserved(w)
			return
		}
		v := slices.IndexFunc(group.Versions, func(v apidiscovery.APIVersionDiscovery) bool { return v.Version == version })
		switch {
		case v < 0 && builtIn(group):
			wire.Error(w, apierrors.NewGenericServerResponse(http.StatusNotFound, r.Method, schema.GroupResource{}, "", "", 0, false))
		case v < 0:
			wire.Unserved(w)
		case group.Versions[v].Freshness == apidiscovery.DiscoveryFreshnessStale:
			wire.Error(w, apierrors.NewServiceUnavailable(fmt.Sprintf("the extension API server of %s/%s did not answer at that instant", name, version)))
		default:
			wire.Value(w, http.StatusOK, legacyResources(name, group.Versions[v]))
		}
	}
}

func (a *aggregated) group(name string) (apidiscovery.APIGroupDiscovery, bool) {
	for _, group := range a.list.Items {
		if group.Name == name {
			return group, true
		}
	}
	return apidiscovery.APIGroupDiscovery{}, false
}

// builtIn reports whether the group is built into the server, and not made of custom resources. Discovery names the
// group of a kind only for custom resources.
func builtIn(group apidiscovery.APIGroupDiscovery) bool {
	for _, version := range group.Versions {
		for _, r := range version.Resources {
			return r.ResponseKind != nil && r.ResponseKind.Version == ""
		}
	}
	return false
}

func legacyGroup(group apidiscovery.APIGroupDiscovery) metav1.APIGroup {
	legacy := metav1.APIGroup{Name: group.Name, Versions: []metav1.GroupVersionForDiscovery{}}
	for _, version := range group.Versions {
		legacy.Versions = append(legacy.Versions, metav1.GroupVersionForDiscovery{
			GroupVersion: schema.GroupVersion{Group: group.Name, Version: version.Version}.String(), Version: version.Version,
		})
	}
	if len(legacy.Versions) > 0 {
		legacy.PreferredVersion = legacy.Versions[0]
	}
	return legacy
}

func legacyResources(group string, version apidiscovery.APIVersionDiscovery) *metav1.APIResourceList {
	gv := schema.GroupVersion{Group: group, Version: version.Version}
	list := &metav1.APIResourceList{
		TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: gv.String(), APIResources: []metav1.APIResource{},
	}
	if group == "" {
		list.APIVersion = "" // because Kubernetes 1.1 had none
	}
	for _, r := range version.Resources {
		if !named(r) {
			continue
		}
		legacy := metav1.APIResource{
			Name: r.Resource, SingularName: r.SingularResource, Namespaced: r.Scope == apidiscovery.ScopeNamespace, Kind: r.ResponseKind.Kind,
			Verbs: r.Verbs, ShortNames: r.ShortNames, Categories: r.Categories,
		}
		legacy.Group, legacy.Version = foreign(gv, r.ResponseKind)
		list.APIResources = append(list.APIResources, legacy)
		for _, s := range r.Subresources {
			sub := metav1.APIResource{Name: r.Resource + "/" + s.Subresource, Namespaced: legacy.Namespaced, Kind: s.ResponseKind.Kind, Verbs: s.Verbs}
			sub.Group, sub.Version = foreign(gv, s.ResponseKind)
			list.APIResources = append(list.APIResources, sub)
		}
	}
	return list
}

// foreign returns the group and version of a kind if they differ from those of its resource, else "".
func foreign(gv schema.GroupVersion, of *metav1.GroupVersionKind) (group, version string) {
	if kind := kindOf(gv, of); kind.GroupVersion() != gv {
		return kind.Group, kind.Version
	}
	return "", ""
}
