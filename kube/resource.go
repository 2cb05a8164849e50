package kube

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Resource is a group and resource in one served version.
type Resource struct {
	Group      string
	Version    string
	Name       string // plural, as in paths
	Singular   string
	Kind       string
	Namespaced bool
	Verbs      []string
	ShortNames []string
	Categories []string

	// DefinitionUID is the UID of the CustomResourceDefinition that defines this resource, empty if none is known. If a
	// definition is deleted and created again, the resource begins a new life (I5).
	DefinitionUID types.UID
	// Schema is a digest of the parts of the definition that can change an object's content at an unchanged resource
	// version: versions, schemas, conversion.
	Schema string
}

// GroupResource identifies the resource within a cluster.
func (r Resource) GroupResource() schema.GroupResource {
	return schema.GroupResource{Group: r.Group, Resource: r.Name}
}

// GroupVersion returns the API group and version under which the resource is read.
func (r Resource) GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: r.Group, Version: r.Version}
}

// String returns, for example, "apps/v1 deployments".
func (r Resource) String() string {
	return r.GroupVersion().String() + " " + r.Name
}

// path returns the segments of the resource's path, for all namespaces if namespace is empty.
func (r Resource) path(namespace string, more ...string) []string {
	segments := []string{"apis", r.Group, r.Version}
	if r.Group == "" {
		segments = []string{"api", r.Version}
	}
	if namespace != "" {
		segments = append(segments, "namespaces", namespace)
	}
	return append(append(segments, r.Name), more...)
}

// hasVerb reports whether discovery lists the verb.
func (r Resource) hasVerb(verb string) bool {
	for _, v := range r.Verbs {
		if strings.EqualFold(v, verb) {
			return true
		}
	}
	return false
}
