package kube

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
)

// List is one page of a list. meta.ExtractList and meta.EachListItem work on it.
type List struct {
	metav1.TypeMeta
	metav1.ListMeta

	Items []*Object

	undecodable []error
}

var (
	_ runtime.Object       = (*List)(nil)
	_ metav1.ListInterface = (*List)(nil)
)

// Undecodable returns an *[UndecodableError] for each item that could not be decoded. The recorder names up to
// five of them in a gap (I3).
func (l *List) Undecodable() []error { return l.undecodable }

// DeepCopyObject implements runtime.Object.
func (l *List) DeepCopyObject() runtime.Object {
	if l == nil {
		return nil
	}
	c := &List{TypeMeta: l.TypeMeta, undecodable: append([]error(nil), l.undecodable...)}
	l.ListMeta.DeepCopyInto(&c.ListMeta)
	for _, item := range l.Items {
		c.Items = append(c.Items, item.DeepCopyObject().(*Object))
	}
	return c
}

// UndecodableError is returned if the server sent well-formed JSON that is not an object with metadata.
type UndecodableError struct {
	Resource  Resource
	Namespace string // if it could be read
	Name      string // if it could be read
	Index     int    // of the item in its page, -1 in a watch
	Err       error
}

func (e *UndecodableError) Error() string {
	where := "event"
	if e.Index >= 0 {
		where = fmt.Sprintf("item %d of the list", e.Index)
	}
	return fmt.Sprintf("%s of %s%s cannot be decoded: %v", where, e.Resource, named(e.Namespace, e.Name), e.Err)
}

func (e *UndecodableError) Unwrap() error { return e.Err }

// ObjectName returns the object's name, empty if it could not be read.
func (e *UndecodableError) ObjectName() cache.ObjectName {
	return cache.ObjectName{Namespace: e.Namespace, Name: e.Name}
}

// named returns an object's name for a message, "" if it is unknown.
func named(namespace, name string) string {
	switch {
	case name == "":
		return ""
	case namespace == "":
		return fmt.Sprintf(" (%s)", name)
	}
	return fmt.Sprintf(" (%s/%s)", namespace, name)
}
