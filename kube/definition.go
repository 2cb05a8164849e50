package kube

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
)

var (
	definitionResource = Resource{Group: "apiextensions.k8s.io", Version: "v1", Name: "customresourcedefinitions", Kind: "CustomResourceDefinition"}
	serviceResource    = Resource{Group: "apiregistration.k8s.io", Version: "v1", Name: "apiservices", Kind: "APIService"}
)

// Definitions is the resource of CustomResourceDefinitions.
var Definitions = definitionResource.GroupResource()

// definition is what a CustomResourceDefinition says about its resource.
type definition struct {
	resource    Resource // without version
	versions    []string // served, the one that the server prefers first
	established bool     // its resource is served
}

// groupResource is which resource it defines.
func (d *definition) groupResource() schema.GroupResource { return d.resource.GroupResource() }

// in gives the resource in the version in use, if that is served, else in the
// preferred one. It is false if no version is served.
func (d *definition) in(inUse string) (Resource, bool) {
	if len(d.versions) == 0 {
		return Resource{}, false
	}
	r := d.resource
	r.Version = d.versions[0]
	if slices.Contains(d.versions, inUse) {
		r.Version = inUse
	}
	return r, true
}

// definitionJSON is the part of a CustomResourceDefinition that matters here.
type definitionJSON struct {
	Spec struct {
		Group string `json:"group"`
		Scope string `json:"scope"`
		Names struct {
			Plural     string   `json:"plural"`
			Singular   string   `json:"singular"`
			Kind       string   `json:"kind"`
			ShortNames []string `json:"shortNames"`
			Categories []string `json:"categories"`
		} `json:"names"`
		Versions   json.RawMessage `json:"versions"`
		Conversion struct {
			Strategy string `json:"strategy"`
		} `json:"conversion"`
		PreserveUnknownFields bool `json:"preserveUnknownFields"`
	} `json:"spec"`
	Status struct {
		Conditions []condition `json:"conditions"`
	} `json:"status"`
}

type condition struct {
	Type   string `json:"type"`
	Status string `json:"status"`
}

// holds reports whether a condition is true.
func holds(conditions []condition, kind string) bool {
	return slices.Contains(conditions, condition{Type: kind, Status: "True"})
}

// definedVerbs are the verbs that kube-apiserver gives every custom resource.
var definedVerbs = []string{"delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"}

// parseDefinition reads a CustomResourceDefinition.
func parseDefinition(o *Object) (*definition, error) {
	var crd definitionJSON
	if err := json.Unmarshal(o.JSON, &crd); err != nil {
		return nil, fmt.Errorf("CustomResourceDefinition %s: %w", o.Name, err)
	}
	var served []struct {
		Name   string `json:"name"`
		Served bool   `json:"served"`
	}
	if err := json.Unmarshal(crd.Spec.Versions, &served); err != nil {
		return nil, fmt.Errorf("CustomResourceDefinition %s: versions: %w", o.Name, err)
	}
	d := &definition{established: holds(crd.Status.Conditions, "Established")}
	for _, v := range served {
		if v.Served {
			d.versions = append(d.versions, v.Name)
		}
	}
	// Within the group the server prefers by the same rule, so that the preferred
	// version of the resource is the first of its own.
	slices.SortFunc(d.versions, func(a, b string) int { return version.CompareKubeAwareVersionStrings(b, a) })
	names := crd.Spec.Names
	for _, v := range d.versions {
		if fault := nameFault(Resource{Group: crd.Spec.Group, Version: v, Name: names.Plural, Kind: names.Kind}); fault != "" {
			return nil, fmt.Errorf("CustomResourceDefinition %s: %s", quoted(o.Name), fault)
		}
	}
	d.resource = Resource{
		Group: crd.Spec.Group, Name: names.Plural, Singular: names.Singular, Kind: names.Kind,
		Namespaced: crd.Spec.Scope == "Namespaced", Verbs: definedVerbs,
		ShortNames: names.ShortNames, Categories: names.Categories,
		DefinitionUID: o.UID, Schema: schemaDigest(&crd),
	}
	return d, nil
}

// schemaDigest covers what can change an object's content at an unchanged resource
// version. A conversion webhook's CA bundle, which is rotated, cannot.
func schemaDigest(crd *definitionJSON) string {
	h := sha256.New()
	h.Write(crd.Spec.Versions)
	fmt.Fprintf(h, "\x00%s\x00%t", crd.Spec.Conversion.Strategy, crd.Spec.PreserveUnknownFields)
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// origin is where the resources of a group version come from.
type origin int

const (
	originUnknown    origin = iota
	originBuiltIn           // compiled into the API server
	originDefinition        // CustomResourceDefinitions
	originService           // another API server behind the aggregator
)

// service is what an APIService says about a group version.
type service struct {
	groupVersion schema.GroupVersion
	origin       origin
	available    bool
}

// serviceName is the name of the APIService of a group version.
func serviceName(gv schema.GroupVersion) string { return gv.Version + "." + gv.Group }

// automanaged is the label by which the aggregator tells its own APIServices:
// "onstart" for what is compiled in, "true" for those of CustomResourceDefinitions.
const automanaged = "kube-aggregator.kubernetes.io/automanaged"

// parseService reads an APIService.
func parseService(o *Object) (*service, error) {
	var api struct {
		Spec struct {
			Group   string    `json:"group"`
			Version string    `json:"version"`
			Service *struct{} `json:"service"`
		} `json:"spec"`
		Status struct {
			Conditions []condition `json:"conditions"`
		} `json:"status"`
	}
	if err := json.Unmarshal(o.JSON, &api); err != nil {
		return nil, fmt.Errorf("APIService %s: %w", o.Name, err)
	}
	s := &service{
		groupVersion: schema.GroupVersion{Group: api.Spec.Group, Version: api.Spec.Version},
		available:    holds(api.Status.Conditions, "Available"),
	}
	switch {
	case api.Spec.Service != nil:
		s.origin = originService
	case o.Labels[automanaged] == "onstart":
		s.origin = originBuiltIn
	case o.Labels[automanaged] == "true":
		s.origin = originDefinition
	}
	return s, nil
}
