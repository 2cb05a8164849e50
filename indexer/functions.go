package indexer

import (
	"encoding/json"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/kuberewind/kuberewind/patch"
)

// The names of the built-in indices.
const (
	// NamespaceIndex is by namespace, "" for cluster-scoped objects.
	NamespaceIndex = cache.NamespaceIndex
	// LabelIndex is by label, as "key" and as "key=value".
	LabelIndex = "label"
	// OwnerIndex is by the UIDs of the owners.
	OwnerIndex = "owner"
	// NodeIndex is by spec.nodeName: the Pods of a node.
	NodeIndex = "node"
	// UIDIndex is by UID.
	UIDIndex = "uid"
)

// BuiltIn returns the built-in indices, in a new map.
func BuiltIn() cache.Indexers {
	return cache.Indexers{
		NamespaceIndex: NamespaceIndexFunc, LabelIndex: LabelIndexFunc, OwnerIndex: OwnerIndexFunc,
		NodeIndex: NodeIndexFunc, UIDIndex: UIDIndexFunc,
	}
}

// NamespaceIndexFunc is the cache.IndexFunc of NamespaceIndex. Like the others, it works on any object with metadata
// and on texts. An Indexer of this package does not decode an object for it.
func NamespaceIndexFunc(obj any) ([]string, error) {
	return ofObject(obj, namespaces, func(o metav1.Object) []string { return []string{o.GetNamespace()} })
}

// LabelIndexFunc is the cache.IndexFunc of LabelIndex.
func LabelIndexFunc(obj any) ([]string, error) {
	return ofObject(obj, labels, func(o metav1.Object) []string { return labelValues(o.GetLabels()) })
}

// OwnerIndexFunc is the cache.IndexFunc of OwnerIndex.
func OwnerIndexFunc(obj any) ([]string, error) {
	return ofObject(obj, owners, func(o metav1.Object) []string { return ownerValues(o.GetOwnerReferences()) })
}

// UIDIndexFunc is the cache.IndexFunc of UIDIndex.
func UIDIndexFunc(obj any) ([]string, error) {
	return ofObject(obj, uids, func(o metav1.Object) []string { return some(string(o.GetUID())) })
}

// NodeIndexFunc is the cache.IndexFunc of NodeIndex.
func NodeIndexFunc(obj any) ([]string, error) {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		name, _, _ := unstructured.NestedString(u.Object, "spec", "nodeName")
		return some(name), nil
	}
	doc, err := docOf(obj)
	if err != nil {
		return nil, err
	}
	return nodes(doc)
}

// builtIn returns the function that computes a built-in index from a text, and nil for any other function. It
// identifies functions at package level by their code.
func builtIn(of cache.IndexFunc) func(patch.Doc) ([]string, error) {
	return fromText[reflect.ValueOf(of).Pointer()]
}

var fromText = map[uintptr]func(patch.Doc) ([]string, error){
	reflect.ValueOf(NamespaceIndexFunc).Pointer():           namespaces,
	reflect.ValueOf(cache.MetaNamespaceIndexFunc).Pointer(): namespaces,
	reflect.ValueOf(LabelIndexFunc).Pointer():               labels,
	reflect.ValueOf(OwnerIndexFunc).Pointer():               owners,
	reflect.ValueOf(NodeIndexFunc).Pointer():                nodes,
	reflect.ValueOf(UIDIndexFunc).Pointer():                 uids,
}

func ofObject(obj any, fromText func(patch.Doc) ([]string, error), fromObject func(metav1.Object) []string) ([]string, error) {
	if isText(obj) {
		doc, err := docOf(obj)
		if err != nil {
			return nil, err
		}
		return fromText(doc)
	}
	object, err := meta.Accessor(obj)
	if err != nil {
		return nil, err
	}
	return fromObject(object), nil
}

func namespaces(doc patch.Doc) ([]string, error) {
	return []string{text(doc, "/metadata/namespace")}, nil
}

func uids(doc patch.Doc) ([]string, error) { return some(text(doc, "/metadata/uid")), nil }

func nodes(doc patch.Doc) ([]string, error) { return some(text(doc, "/spec/nodeName")), nil }

func labels(doc patch.Doc) ([]string, error) {
	var pairs map[string]string
	if err := member(doc, "/metadata/labels", &pairs); err != nil {
		return nil, err
	}
	return labelValues(pairs), nil
}

func owners(doc patch.Doc) ([]string, error) {
	var references []struct {
		UID types.UID `json:"uid"`
	}
	if err := member(doc, "/metadata/ownerReferences", &references); err != nil {
		return nil, err
	}
	values := make([]string, 0, len(references))
	for i := range references {
		values = append(values, string(references[i].UID))
	}
	return values, nil
}

// member decodes one value of a text, if the value exists.
func member(doc patch.Doc, pointer string, into any) error {
	value, ok := patch.Get(doc, pointer)
	if !ok {
		return nil
	}
	if err := json.Unmarshal(value, into); err != nil {
		return fmt.Errorf("%s: %w", pointer, err)
	}
	return nil
}

func labelValues(pairs map[string]string) []string {
	values := make([]string, 0, 2*len(pairs))
	for key, value := range pairs {
		values = append(values, key, key+"="+value)
	}
	return values
}

func ownerValues(references []metav1.OwnerReference) []string {
	values := make([]string, 0, len(references))
	for i := range references {
		values = append(values, string(references[i].UID))
	}
	return values
}

// some returns a slice of the value, or nil for "".
func some(value string) []string {
	if value == "" {
		return nil
	}
	return []string{value}
}
