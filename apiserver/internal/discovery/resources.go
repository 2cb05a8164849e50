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

// A Resource is one version of a resource that the server served at the instant.
type Resource struct {
	schema.GroupVersionResource
	Kind       schema.GroupVersionKind
	Namespaced bool
	Recorded   bool     // the record has its objects
	Versions   []string // of the group, in which the server served it, the preferred one first

	Subresources []string // only those that clients can read
}

// Resource finds a resource that the server served at the instant, recorded or not.
func (s *Server) Resource(gvr schema.GroupVersionResource) (Resource, bool) {
	r, ok := s.resources[gvr]
	return r, ok
}

// reading are the verbs that are possible in the past.
var reading = []string{"get", "list", "watch"}

// subresources are the subresources that the object itself contains: status is the object.
var subresources = []string{"status", "scale"}

// Readable reports whether clients can read a subresource, if the server had it.
func Readable(subresource string) bool { return slices.Contains(subresources, subresource) }

// readDiscovery returns aggregated discovery of /api and of /apis.
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

// readAggregated reads one document. The list is empty if there is no document, or if the server knew only the legacy form.
// The form of v2beta1 differs only in its name.
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

// add adds a resource after the others of its group and version.
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

// trim removes the verbs and subresources that are not possible in the past.
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

// trimSubresources keeps only the readable subresources. If the resource itself cannot be read, it keeps none.
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

// named reports whether an entry belongs to a resource. For subresources without a resource, the server makes an entry
// without a kind.
func named(r apidiscovery.APIResourceDiscovery) bool {
	return r.ResponseKind != nil && r.ResponseKind.Kind != ""
}

// kindOf returns the kind of a resource's objects. The server omits the group and version of built-in kinds.
func kindOf(gv schema.GroupVersion, kind *metav1.GroupVersionKind) schema.GroupVersionKind {
	if kind.Version == "" {
		return gv.WithKind(kind.Kind)
	}
	return schema.GroupVersionKind(*kind)
}
