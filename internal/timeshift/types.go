package timeshift

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kuberewind/kuberewind/patch"
)

var (
	times   = []reflect.Type{reflect.TypeFor[metav1.Time](), reflect.TypeFor[metav1.MicroTime]()}
	encoder = reflect.TypeFor[json.Marshaler]()
)

// MetadataPaths returns the paths of times in the metadata of any object.
func MetadataPaths() []patch.Path {
	return TypePaths(reflect.TypeFor[metav1.PartialObjectMetadata]())
}

// TypePaths returns the paths of times in a Go type of the Kubernetes API.
func TypePaths(t reflect.Type) []patch.Path {
	w := &walk{}
	w.value(t, "")
	return w.paths
}

// A walk collects the paths of a type.
type walk struct {
	paths []patch.Path
	open  []reflect.Type // types that contain the current value; a type that contains itself, such as a JSON schema, has no times
}

func (w *walk) value(t reflect.Type, at string) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case slices.Contains(times, t):
		w.paths = appendPath(w.paths, at)
		return
	case reflect.PointerTo(t).Implements(encoder):
		return // such as a quantity, or an object of another kind
	}
	switch t.Kind() {
	case reflect.Slice, reflect.Array, reflect.Map:
		w.value(t.Elem(), at+"/*")
	case reflect.Struct:
		if !slices.Contains(w.open, t) {
			w.open = append(w.open, t)
			w.members(t, at)
			w.open = w.open[:len(w.open)-1]
		}
	default: // contains nothing
	}
}

func (w *walk) members(t reflect.Type, at string) {
	for field := range t.Fields() {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case name == "-" || !field.IsExported():
		case name == "" && (field.Anonymous || strings.Contains(options, "inline")):
			w.value(field.Type, at)
		case name != "":
			w.value(field.Type, at+"/"+name)
		}
	}
}

// appendPath skips a path that cannot be written. All names of Go types can.
func appendPath(paths []patch.Path, text string) []patch.Path {
	path, err := patch.ParsePath(text)
	if err != nil || slices.ContainsFunc(paths, func(known patch.Path) bool { return known.String() == text }) {
		return paths
	}
	return append(paths, path)
}
