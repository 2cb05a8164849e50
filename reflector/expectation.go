package reflector

import (
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// expectation is the type that an object must have to go to the store.
type expectation struct {
	goType reflect.Type             // nil: any
	gvk    *schema.GroupVersionKind // nil: any
}

func expect(example any) expectation {
	e := expectation{goType: reflect.TypeOf(example)}
	if object, ok := example.(*unstructured.Unstructured); ok && !object.GroupVersionKind().Empty() {
		gvk := object.GroupVersionKind()
		e.gvk = &gvk
	}
	return e
}

func (e expectation) String() string {
	switch {
	case e.gvk != nil:
		return e.gvk.String()
	case e.goType != nil:
		return e.goType.String()
	default:
		return "<unspecified>"
	}
}

// metadata returns an object's metadata if the object is as expected.
func (e expectation) metadata(object runtime.Object) (metav1.Object, error) {
	if object == nil {
		return nil, fmt.Errorf("no object where %s was expected", e)
	}
	if isTable(object) {
		return nil, fmt.Errorf("a Table where %s was expected: the client must not ask for tables", e)
	}
	if actual := reflect.TypeOf(object); e.goType != nil && actual != e.goType {
		return nil, fmt.Errorf("object is a %s, expected %s", actual, e.goType)
	}
	if e.gvk != nil && object.GetObjectKind().GroupVersionKind() != *e.gvk {
		return nil, fmt.Errorf("object is a %s, expected %s", object.GetObjectKind().GroupVersionKind(), e.gvk)
	}
	metadata, err := meta.Accessor(object)
	if err != nil {
		return nil, fmt.Errorf("object without metadata: %w", err)
	}
	return metadata, nil
}

// isTable reports whether an object is the server's representation for printing, which holds no objects.
func isTable(object runtime.Object) bool {
	gvk := object.GetObjectKind().GroupVersionKind()
	return gvk.Kind == "Table" && gvk.Group == metav1.GroupName
}

// sizeOf returns the Size of an object in bytes, 0 if it has no such method.
func sizeOf(object any) int64 {
	if sized, ok := object.(interface{ Size() int }); ok {
		return int64(sized.Size())
	}
	return 0
}
