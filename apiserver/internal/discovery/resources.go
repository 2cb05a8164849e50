package discovery

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kuberewind/kuberewind/history"
)

// A Resource is one that the server served at the instant, in one version.
type Resource struct {
	schema.GroupVersionResource
	Kind       schema.GroupVersionKind
	Namespaced bool
	Recorded   bool     // the record has its objects
	Versions   []string // of the group, in which it was served, the preferred one first

	Subresources []string // that can be read
}

// Resource finds a resource that was served at the instant, whether it is on record or not.
func (s *Server) Resource(gvr schema.GroupVersionResource) (Resource, bool) {
	r, ok := s.resources[gvr]
	return r, ok
}

// reading are the verbs that the past allows.
var reading = []string{"get", "list", "watch"}

// subresources are the subresources made of the object itself: status is the object.
var subresources = []string{"status", "scale"}

// Readable reports whether a subresource can be read, if the server had it.
func Readable(subresource string) bool { return slices.Contains(subresources, subresource) }

// readDiscovery gives aggregated discovery of /api and of /apis.
func readDiscovery(ctx context.Context, source Source, at time.Time) (core, groups *apidiscovery.APIGroupDiscoveryList, err error) {
	if core, err = readAggregated(ctx, source, at, "/api"); err != nil {
		return nil, nil, err
	}
	if groups, err = readAggregated(ctx, source, at, "/apis"); err != nil {
		return nil, nil, err
	}
	if len(core.Items)+len(groups.Items) > 0 {
		return core, groups, nil
	}
	resources, err := source.Discovery(ctx, at)
	if err != nil {
		return nil, nil, err
	}
	for _, r := range resources {
		if r.Group == "" {
			add(core, r)
		} else {
			add(groups, r)
		}
	}
	return core, groups, nil
}

// readAggregated reads one document; the list is empty if there is none, or if the server knew only the legacy form. That of v2beta1
// is the same but for its name.
func readAggregated(ctx context.Context, source Source, at time.Time, path string) (*apidiscovery.APIGroupDiscoveryList, error) {
	list := &apidiscovery.APIGroupDiscoveryList{}
	d, found, err := source.Document(ctx, at, path)
	if err != nil {
		return nil, err
	}
	if found {
		if err := json.Unmarshal(d.Content, list); err != nil {
			return nil, fmt.Errorf("discovery at %s, as recorded at %s: %w", path, d.ObservedAt.Format(time.RFC3339), err)
		}
	}
	list.TypeMeta = metav1.TypeMeta{Kind: aggregatedKind.Kind, APIVersion: aggregatedKind.GroupVersion().String()}
	return list, nil
}

// add adds a resource behind those of its group and version.
func add(list *apidiscovery.APIGroupDiscoveryList, r history.Resource) {
	g := slices.IndexFunc(list.Items, func(g apidiscovery.APIGroupDiscovery) bool { return g.Name == r.Group })
	if g < 0 {
		g = len(list.Items)
		list.Items = append(list.Items, apidiscovery.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: r.Group}})
	}
	group := &list.Items[g]
	v := slices.IndexFunc(group.Versions, func(v apidiscovery.APIVersionDiscovery) bool { return v.Version == r.Version })
	if v < 0 {
		v = len(group.Versions)
		group.Versions = append(group.Versions, apidiscovery.APIVersionDiscovery{Version: r.Version, Freshness: apidiscovery.DiscoveryFreshnessCurrent})
	}
	scope := apidiscovery.ScopeCluster
	if r.Namespaced {
		scope = apidiscovery.ScopeNamespace
	}
	group.Versions[v].Resources = append(group.Versions[v].Resources, apidiscovery.APIResourceDiscovery{
		Resource: r.Resource, ResponseKind: &metav1.GroupVersionKind{Kind: r.Kind}, Scope: scope, SingularResource: r.Singular,
		ShortNames: r.ShortNames, Categories: r.Categories, Verbs: r.Verbs,
	})
}

// trim leaves what can be asked of the past.
func trim(list *apidiscovery.APIGroupDiscoveryList, recorded func(schema.GroupResource) bool) {
	for g := range list.Items {
		group := &list.Items[g]
		for v := range group.Versions {
			for i := range group.Versions[v].Resources {
				r := &group.Versions[v].Resources[i]
				known := recorded(schema.GroupResource{Group: group.Name, Resource: r.Resource})
				r.Verbs = slices.DeleteFunc(slices.Clone(reading), func(verb string) bool { return !known || !slices.Contains(r.Verbs, verb) })
				r.Subresources = trimSubresources(r.Subresources, known && slices.Contains(r.Verbs, "get"))
			}
		}
	}
}

// trimSubresources leaves the readable ones. Those of a resource that cannot be read are left out.
func trimSubresources(all []apidiscovery.APISubresourceDiscovery, readable bool) (left []apidiscovery.APISubresourceDiscovery) {
	for _, s := range all {
		if readable && Readable(s.Subresource) && slices.Contains(s.Verbs, "get") && s.ResponseKind != nil {
			s.Verbs = []string{"get"}
			left = append(left, s)
		}
	}
	return left
}

// index notes the resources of a list by their names.
func index(list *apidiscovery.APIGroupDiscoveryList, recorded func(schema.GroupResource) bool, to map[schema.GroupVersionResource]Resource) {
	for _, group := range list.Items {
		served := map[string][]string{} // versions by resource
		for _, version := range group.Versions {
			for _, r := range version.Resources {
				served[r.Resource] = append(served[r.Resource], version.Version)
			}
		}
		for _, version := range group.Versions {
			gv := schema.GroupVersion{Group: group.Name, Version: version.Version}
			for _, r := range version.Resources {
				if named(r) {
					gvr := gv.WithResource(r.Resource)
					to[gvr] = Resource{
						GroupVersionResource: gvr, Kind: kindOf(gv, r.ResponseKind), Namespaced: r.Scope == apidiscovery.ScopeNamespace,
						Recorded: recorded(gvr.GroupResource()), Versions: served[r.Resource],
					}
					for _, s := range r.Subresources {
						r := to[gvr]
						r.Subresources = append(r.Subresources, s.Subresource)
						to[gvr] = r
					}
				}
			}
		}
	}
}

// named says whether an entry is of a resource. The server makes one without a kind for subresources without a resource.
func named(r apidiscovery.APIResourceDiscovery) bool {
	return r.ResponseKind != nil && r.ResponseKind.Kind != ""
}

// kindOf is what a resource's objects are. The server leaves out the group and version of built-in kinds.
func kindOf(gv schema.GroupVersion, kind *metav1.GroupVersionKind) schema.GroupVersionKind {
	if kind.Version == "" {
		return gv.WithKind(kind.Kind)
	}
	return schema.GroupVersionKind(*kind)
}
