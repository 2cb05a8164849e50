package apiserver

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kuberewind/kuberewind/apiserver/internal/state"
	"github.com/kuberewind/kuberewind/internal/printers"
)

// scaleName is the subresource with the wanted and current number of replicas, in the same form for every kind.
const scaleName = "scale"

// scaled makes the Scale of an object.
type scaled struct {
	at       *instant
	resource *served // of the object
	name     string
}

// entry returns the Scale of an object, as the API server would have made it.
func (c *scaled) entry(ctx context.Context, e *state.Entry) (*state.Entry, error) {
	doc, err := c.resource.convert(nil, e)
	if err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(doc); err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	scale := &autoscalingv1.Scale{
		TypeMeta: metav1.TypeMeta{Kind: "Scale", APIVersion: autoscalingv1.SchemeGroupVersion.String()},
		ObjectMeta: metav1.ObjectMeta{
			Name: object.GetName(), Namespace: object.GetNamespace(), UID: object.GetUID(), ResourceVersion: object.GetResourceVersion(),
			CreationTimestamp: object.GetCreationTimestamp(),
		},
	}
	if c.resource.typed {
		err = scaleOfBuiltIn(scale, object)
	} else {
		err = c.ofCustom(ctx, scale, object)
	}
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(scale)
	if err != nil {
		return nil, err
	}
	made := &state.Entry{Namespace: e.Namespace, Name: e.Name}
	made.APIVersion, made.Body = state.Split(text)
	return made, nil
}

// written returns the resource that the forms write: a Scale.
func (c *scaled) written() *served {
	s := *c.resource
	s.Kind = autoscalingv1.SchemeGroupVersion.WithKind("Scale")
	s.GroupVersionResource = autoscalingv1.SchemeGroupVersion.WithResource("scales")
	if !s.typed {
		s.GroupVersionResource = printers.CustomScales.WithVersion(autoscalingv1.SchemeGroupVersion.Version)
	}
	s.typed = true
	return &s
}

// scaleOfBuiltIn fills the Scale of a Deployment, ReplicaSet, StatefulSet or ReplicationController.
func scaleOfBuiltIn(scale *autoscalingv1.Scale, object *unstructured.Unstructured) error {
	var err error
	if scale.Spec.Replicas, _, err = number(object, "spec", "replicas"); err != nil {
		return err
	}
	if scale.Status.Replicas, _, err = number(object, "status", "replicas"); err != nil {
		return err
	}
	selector, _, _ := unstructured.NestedMap(object.Object, "spec", "selector")
	scale.Status.Selector, err = selectorText(selector, object.GetKind() == "ReplicationController")
	return err
}

// selectorText returns a selector in the text form that clients send. plain means a map of labels instead of a
// LabelSelector.
func selectorText(selector map[string]any, plain bool) (string, error) {
	if plain {
		set := labels.Set{}
		for key, value := range selector {
			set[key] = fmt.Sprint(value)
		}
		return labels.SelectorFromSet(set).String(), nil
	}
	text, err := json.Marshal(selector)
	if err != nil {
		return "", err
	}
	var typed metav1.LabelSelector
	if err := json.Unmarshal(text, &typed); err != nil {
		return "", apierrors.NewInternalError(err)
	}
	found, err := metav1.LabelSelectorAsSelector(&typed)
	if err != nil {
		return "", apierrors.NewInternalError(err)
	}
	return found.String(), nil
}

// ofCustom fills the Scale of a custom resource. The paths of its numbers are in its definition.
func (c *scaled) ofCustom(ctx context.Context, scale *autoscalingv1.Scale, object *unstructured.Unstructured) error {
	places, err := c.places(ctx)
	if err != nil {
		return err
	}
	var found bool
	if scale.Spec.Replicas, found, err = number(object, place(places.SpecReplicasPath)...); err != nil {
		return err
	}
	if !found {
		return apierrors.NewInternalError(fmt.Errorf("the spec replicas field %q does not exist", places.SpecReplicasPath))
	}
	if scale.Status.Replicas, _, err = number(object, place(places.StatusReplicasPath)...); err != nil || places.LabelSelectorPath == nil {
		return err
	}
	scale.Status.Selector, _, err = unstructured.NestedString(object.Object, place(*places.LabelSelectorPath)...)
	return internal(err)
}

// places returns the paths of the scale subresource from the definition of a custom resource.
func (c *scaled) places(ctx context.Context) (*apiextensionsv1.CustomResourceSubresourceScale, error) {
	text, err := c.at.definition(ctx, c.resource.GroupResource())
	if err != nil {
		return nil, err
	}
	var definition apiextensionsv1.CustomResourceDefinition
	if text != nil {
		if err := json.Unmarshal(text, &definition); err != nil {
			return nil, apierrors.NewInternalError(err)
		}
	}
	for i := range definition.Spec.Versions {
		if v := &definition.Spec.Versions[i]; v.Name == c.resource.Version && v.Subresources != nil && v.Subresources.Scale != nil {
			return v.Subresources.Scale, nil
		}
	}
	return nil, c.resource.absent(c.name, "the record does not have the path of its replicas at this instant: read the object itself")
}

// place splits a path such as .spec.replicas.
func place(path string) []string { return strings.Split(strings.TrimPrefix(path, "."), ".") }

func number(object *unstructured.Unstructured, fields ...string) (n int32, found bool, err error) {
	wide, found, err := unstructured.NestedInt64(object.Object, fields...)
	return int32(wide), found, internal(err) //nolint:gosec // The API server truncates it in the same way.
}

func internal(err error) error {
	if err == nil {
		return nil
	}
	return apierrors.NewInternalError(err)
}
