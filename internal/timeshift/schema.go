package timeshift

import (
	"strings"

	"github.com/kuberewind/kuberewind/patch"
)

// DefinitionPaths returns the paths of times in a custom resource of a version, from its CustomResourceDefinition. Without
// a definition, it returns those of the metadata.
func DefinitionPaths(definition patch.Doc, version string) []patch.Path {
	paths := MetadataPaths()
	versions, _ := patch.Get(definition, "/spec/versions")
	for _, v := range patch.Members(versions) {
		if text(v, "/name") == version {
			schema, _ := patch.Get(v, "/schema/openAPIV3Schema")
			paths = schemaPaths(paths, schema, "")
		}
	}
	return paths
}

// schemaPaths appends the paths of times in a schema.
func schemaPaths(paths []patch.Path, schema patch.Doc, at string) []patch.Path {
	if text(schema, "/type") == "string" && text(schema, "/format") == "date-time" {
		return appendPath(paths, at)
	}
	if embedded, _ := patch.Get(schema, "/x-kubernetes-embedded-resource"); string(embedded) == "true" && at != "" {
		for _, path := range MetadataPaths() {
			paths = appendPath(paths, at+path.String())
		}
	}
	properties, _ := patch.Get(schema, "/properties")
	for key, property := range patch.Members(properties) {
		name, ok := patch.Unquote(patch.Doc(`"` + string(key) + `"`))
		if !ok || string(name) == "*" {
			continue // In a path, * would mean every member.
		}
		paths = schemaPaths(paths, property, at+"/"+escaper.Replace(string(name)))
	}
	for _, each := range []string{"/items", "/additionalProperties"} {
		if values, ok := patch.Get(schema, each); ok {
			paths = schemaPaths(paths, values, at+"/*")
		}
	}
	return paths
}

var escaper = strings.NewReplacer("~", "~0", "/", "~1")

func text(doc patch.Doc, pointer string) string {
	value, _ := patch.Get(doc, pointer)
	plain, _ := patch.Unquote(value)
	return string(plain)
}
