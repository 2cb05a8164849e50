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

// definition is the parsed part of a CustomResourceDefinition.
type definition struct {
	resource    Resource // without version
	versions    []string // served versions, the server's preferred one first
	established bool     // the server serves its resource
}

// groupResource returns the resource that it defines.
func (d *definition) groupResource() schema.GroupResource { return d.resource.GroupResource() }

// in returns the resource in the version in use if the server serves that version, else in the preferred version. It
// returns false if no version is served.
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

// definitionJSON has the fields of a CustomResourceDefinition that this package reads.
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

// definedVerbs are the verbs of every custom resource in kube-apiserver.
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
	// The server orders the versions of a group by the same rule. So the resource's first version is its preferred one.
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

// schemaDigest covers the fields that can change an object's content at an unchanged resource version. A conversion
// webhook's CA bundle is not among them: it is rotated, and changes no object.
func schemaDigest(crd *definitionJSON) string {
	h := sha256.New()
	h.Write(crd.Spec.Versions)
	fmt.Fprintf(h, "\x00%s\x00%t", crd.Spec.Conversion.Strategy, crd.Spec.PreserveUnknownFields)
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// origin says where the resources of a group version come from.
type origin int

const (
	originUnknown    origin = iota
	originBuiltIn           // compiled into the API server
	originDefinition        // CustomResourceDefinitions
	originService           // another API server behind the aggregator
)

// service is the parsed part of an APIService.
type service struct {
	groupVersion schema.GroupVersion
	origin       origin
	available    bool
}

// serviceName returns the name of a group version's APIService.
func serviceName(gv schema.GroupVersion) string { return gv.Version + "." + gv.Group }

// automanaged is the label with which the aggregator marks its own APIServices: "onstart" for compiled-in groups, "true"
// for the groups of CustomResourceDefinitions.
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
