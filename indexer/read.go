package indexer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kuberewind/kuberewind/patch"
)

var errNoMetadata = errors.New("the object has no metadata")

// docOf returns the text of any object that can be kept.
func docOf(obj any) (doc patch.Doc, err error) {
	switch o := obj.(type) {
	case nil:
		return nil, errors.New("there is no object")
	case patch.Doc:
		doc = o
	case []byte:
		doc, err = patch.Canonical(o)
	case json.RawMessage:
		doc, err = patch.Canonical(o)
	case *unstructured.Unstructured:
		if o == nil {
			return nil, errors.New("there is no object")
		}
		doc, err = encoded(o.Object)
	case *metav1.ObjectMeta:
		doc, err = encoded(map[string]any{"metadata": o})
	default:
		if _, err := meta.Accessor(obj); err != nil {
			return nil, fmt.Errorf("a %T cannot be kept: %w", obj, err)
		}
		doc, err = encoded(obj)
	}
	if err != nil {
		return nil, fmt.Errorf("the text of a %T: %w", obj, err)
	}
	return doc, nil
}

// metadataOf returns the metadata of a text.
func metadataOf(doc patch.Doc) (patch.Doc, error) {
	metadata, ok := patch.Get(doc, "/metadata")
	if !ok || metadata[0] != '{' {
		return nil, errNoMetadata
	}
	return metadata, nil
}

func encoded(value any) (patch.Doc, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	return patch.Canonical(text)
}

// isText reports whether an object is passed as JSON.
func isText(obj any) bool {
	switch obj.(type) {
	case patch.Doc, []byte, json.RawMessage:
		return true
	}
	return false
}

func joined(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

// text returns the string at a pointer, or "" if there is none.
func text(doc patch.Doc, pointer string) string {
	value, ok := patch.Get(doc, pointer)
	if !ok {
		return ""
	}
	plain, ok := patch.Unquote(value)
	if !ok {
		return ""
	}
	return string(plain)
}

func decodeUnstructured(doc patch.Doc) (any, error) { return Decode(doc) }

// Decode makes an object of its text as client-go does: integers are int64, other numbers float64. A number that fits
// neither stays a json.Number, which client-go would reject. An error means that the text is not a JSON object.
func Decode(doc patch.Doc) (*unstructured.Unstructured, error) {
	if value, err := patch.Decode(doc); err == nil {
		if object, ok := value.(map[string]any); ok {
			return &unstructured.Unstructured{Object: object}, nil
		}
	}
	var object map[string]any
	decoder := json.NewDecoder(bytes.NewReader(doc))
	decoder.UseNumber()
	if err := decoder.Decode(&object); err != nil {
		return nil, err
	}
	if object == nil {
		return nil, errors.New("the text is no JSON object")
	}
	return &unstructured.Unstructured{Object: numbered(object).(map[string]any)}, nil
}

// numbered turns each json.Number into the int64 or float64 that it fits into.
func numbered(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key := range v {
			v[key] = numbered(v[key])
		}
	case []any:
		for i := range v {
			v[i] = numbered(v[i])
		}
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		if f, err := strconv.ParseFloat(string(v), 64); err == nil && !math.IsInf(f, 0) {
			return f
		}
	}
	return value
}
