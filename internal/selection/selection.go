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

// A Selector is what an API server takes as labelSelector and fieldSelector.
type Selector struct {
	labels labels.Selector
	fields fields.Selector
}

// New reads selectors for objects of a kind. definition gives its CustomResourceDefinition, nil if it has none. The errors
// are the API server's.
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

// knownFields says which fields the server would have taken, and what it would have called them.
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

// EveryLabel reports whether the labels of an object do not matter.
func (s Selector) EveryLabel() bool { return s.labels == nil || s.labels.Empty() }

// Labels are what the selector requires of labels.
func (s Selector) Labels() labels.Requirements {
	if s.labels == nil {
		return nil
	}
	all, _ := s.labels.Requirements()
	return all
}

// Matches reports whether an object is selected. The zero Selector selects every object.
func (s Selector) Matches(doc patch.Doc) bool {
	if !s.EveryLabel() && !s.labels.Matches(labels.Set(StringsAt(doc, "/metadata/labels"))) {
		return false
	}
	return s.fields == nil || s.fields.Empty() || s.fields.Matches(fieldsOf{doc})
}

// StringsAt is the map of strings at a JSON pointer; what is no string is left out.
func StringsAt(doc patch.Doc, pointer string) map[string]string {
	found := map[string]string{}
	if value, ok := patch.Get(doc, pointer); ok {
		_ = json.Unmarshal(value, &found) // A value that is no map of strings selects nothing.
	}
	return found
}

// fieldsOf looks fields up in an object as it was served.
type fieldsOf struct{ doc patch.Doc }

// Has is part of fields.Fields.
func (f fieldsOf) Has(string) bool { return true }

// The API server's fields whose path is not their name, in the served versions.
var fieldPaths = map[string][]string{
	"source":             {"/source/component", "/reportingComponent", "/deprecatedSource/component", "/reportingController"},
	"reportingComponent": {"/reportingComponent", "/reportingController"},
	"status.successful":  {"/status/succeeded"},
	"status.podIPs":      {}, // taken, and the server never finds a value
}

// The server's value of a field that is not in the text: the zero of its type.
var fieldZeros = map[string]string{
	"spec.unschedulable": "false", "spec.hostNetwork": "false", "status.replicas": "0", "status.successful": "0",
}

// Get is part of fields.Fields.
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
