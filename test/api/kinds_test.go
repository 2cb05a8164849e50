package api_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// A kind is a resource in one version that the API server lists.
type kind struct {
	schema.GroupVersionResource
	name       string // its kind
	namespaced bool
	watched    bool
}

// findKinds asks discovery, for all versions.
func (s *system) findKinds(t *testing.T) []kind {
	t.Helper()
	client, err := discovery.NewDiscoveryClientForConfig(s.plane.Config())
	require.NoError(t, err)
	_, lists, err := client.ServerGroupsAndResources()
	require.NoError(t, err)
	var kinds []kind
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		require.NoError(t, err)
		for _, r := range list.APIResources {
			if slices.Contains(r.Verbs, "list") {
				kinds = append(kinds, kind{version.WithResource(r.Name), r.Kind, r.Namespaced, slices.Contains(r.Verbs, "watch")})
			}
		}
	}
	require.NotEmpty(t, kinds)
	return kinds
}

// usual are the resources that make test compares at each revision.
var usual = []string{
	"pods.v1.", "configmaps.v1.", "secrets.v1.", "events.v1.events.k8s.io", "deployments.v1.apps", "nodes.v1.", "widgets.v1.example.com", "gadgets.v1beta1.example.com",
}

func (s *system) kind(t *testing.T, name string) kind {
	t.Helper()
	i := slices.IndexFunc(s.kinds, func(k kind) bool { return k.String() == name })
	require.NotEqual(t, -1, i, "the API server does not list %s", name)
	return s.kinds[i]
}

// compared are the kinds of a run.
func (s *system) compared(t *testing.T) []kind {
	t.Helper()
	if *resources == 0 {
		return s.kinds
	}
	return s.first(t, *resources)
}

// first are the first of the usual kinds.
func (s *system) first(t *testing.T, n int) (kinds []kind) {
	t.Helper()
	for _, name := range usual[:n] {
		kinds = append(kinds, s.kind(t, name))
	}
	return kinds
}

func (k kind) String() string { return k.Resource + "." + k.Version + "." + k.Group }

// path is that of the resource in a namespace, "" for all.
func (k kind) path(namespace string, name ...string) string {
	root := "/apis/" + k.Group + "/" + k.Version
	if k.Group == "" {
		root = "/api/" + k.Version
	}
	if namespace != metav1.NamespaceAll {
		root += "/namespaces/" + namespace
	}
	return strings.Join(append([]string{root, k.Resource}, name...), "/")
}

// watches reports whether the API server lets a resource be watched, so that it is on record.
func (s *system) watches(groupVersion, resource string) bool {
	return slices.ContainsFunc(s.kinds, func(k kind) bool {
		return k.watched && k.Resource == resource && k.GroupVersion().String() == groupVersion
	})
}
