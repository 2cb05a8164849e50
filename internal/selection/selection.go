package selection

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kubernetes/pkg/api/legacyscheme"

	"github.com/kuberewind/kuberewind/patch"
)

// A Selector is a labelSelector and a fieldSelector of an API server.
type Selector struct {
	labels labels.Selector
	fields fields.Selector
}

// New parses selectors for objects of a kind. definition returns its CustomResourceDefinition, nil if it has none. The
// errors are the API server's.
func New(label, field string, kind schema.GroupVersionKind, definition func() ([]byte, error)) (Selector, error) {
	parsed, err := labels.Parse(label)
	if err != nil {
		return Selector{}, err
	}
	s := Selector{labels: parsed, fields: fields.Everything()}
	if field == "" {
		return s, nil
	}
	if s.fields, err = fields.ParseSelector(field); err != nil {
		return Selector{}, err
	}
	known, err := knownFields(kind, definition)
	if err != nil {
		return Selector{}, err
	}
	s.fields, err = s.fields.Transform(known)
	return s, err
}

// knownFields returns a function that maps the selectable fields to the server's names, and rejects the others.
func knownFields(kind schema.GroupVersionKind, definition func() ([]byte, error)) (fields.TransformFunc, error) {
	if legacyscheme.Scheme.Recognizes(kind) {
		return func(name, value string) (string, string, error) {
			return legacyscheme.Scheme.ConvertFieldLabel(kind, name, value)
		}, nil
	}
	selectable := []string{"metadata.name", "metadata.namespace"}
	doc, err := definition()
	if err != nil {
		return nil, err
	}
	if doc != nil {
		selectable = append(selectable, selectableFields(doc, kind.Version)...)
	}
	return func(name, value string) (string, string, error) {
		if slices.Contains(selectable, name) {
			return name, value, nil
		}
		if doc == nil {
			return "", "", fmt.Errorf("%q is not a known field selector: only %q, %q", name, selectable[0], selectable[1])
		}
		return "", "", fmt.Errorf("field label not supported: %s", name)
	}, nil
}

func selectableFields(definition []byte, version string) []string {
	var crd struct {
		Spec struct {
			Versions []struct {
				Name             string
				SelectableFields []struct{ JSONPath string }
			}
		}
	}
	if json.Unmarshal(definition, &crd) != nil {
		return nil
	}
	var names []string
	for _, v := range crd.Spec.Versions {
		for _, f := range v.SelectableFields {
			if v.Name == version {
				names = append(names, strings.TrimPrefix(f.JSONPath, "."))
			}
		}
	}
	return names
}

// EveryLabel reports whether the selector accepts all labels.
func (s Selector) EveryLabel() bool { return s.labels == nil || s.labels.Empty() }

// Labels returns the requirements of the labelSelector.
func (s Selector) Labels() labels.Requirements {
	if s.labels == nil {
		return nil
	}
	all, _ := s.labels.Requirements()
	return all
}

// Matches reports whether the selector matches an object. The zero Selector matches every object.
func (s Selector) Matches(doc patch.Doc) bool {
	if !s.EveryLabel() && !s.labels.Matches(labels.Set(StringsAt(doc, "/metadata/labels"))) {
		return false
	}
	return s.fields == nil || s.fields.Empty() || s.fields.Matches(fieldsOf{doc})
}

// StringsAt returns the map of strings at a JSON pointer, without members that are not strings.
func StringsAt(doc patch.Doc, pointer string) map[string]string {
	found := map[string]string{}
	if value, ok := patch.Get(doc, pointer); ok {
		_ = json.Unmarshal(value, &found) // a value that is not a map of strings matches nothing
	}
	return found
}

// fieldsOf reads fields from an object in its served form.
type fieldsOf struct{ doc patch.Doc }

// Has implements fields.Fields.
func (f fieldsOf) Has(string) bool { return true }

// The API server's fields whose path differs from their name, in the served versions.
var fieldPaths = map[string][]string{
	"source":             {"/source/component", "/reportingComponent", "/deprecatedSource/component", "/reportingController"},
	"reportingComponent": {"/reportingComponent", "/reportingController"},
	"status.successful":  {"/status/succeeded"},
	"status.podIPs":      {}, // the server accepts it, but never finds a value
}

// The server's values of fields that are not in the text: the zero values of their types.
var fieldZeros = map[string]string{
	"spec.unschedulable": "false", "spec.hostNetwork": "false", "status.replicas": "0", "status.successful": "0",
}

// Get implements fields.Fields.
func (f fieldsOf) Get(name string) string {
	pointers := fieldPaths[name]
	if pointers == nil {
		path := "/" + strings.ReplaceAll(name, ".", "/")
		pointers = []string{path}
		if rest, ok := strings.CutPrefix(path, "/involvedObject/"); ok {
			pointers = append(pointers, "/regarding/"+rest)
		}
	}
	for _, pointer := range pointers {
		value, ok := patch.Get(f.doc, pointer)
		if !ok || string(value) == "null" {
			continue
		}
		if text, isString := patch.Unquote(value); isString {
			if len(text) == 0 {
				continue
			}
			return string(text)
		}
		return string(value)
	}
	return fieldZeros[name]
}
