package printers

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var definitions = schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}

// definition makes cells of CustomResourceDefinitions like apiextensions-apiserver, whose printer needs types of the server.
type definition struct{}

func (definition) columns() []metav1.TableColumnDefinition {
	return []metav1.TableColumnDefinition{
		nameColumn, {Name: "Scope", Type: "string", Description: "Cluster/Namespaced"}, {Name: "Versions", Type: "string", Description: "Served versions"}, createdColumn,
		{Name: "Group", Type: "string", Priority: 1, Description: "API group"}, {Name: "Kind", Type: "string", Priority: 1, Description: "CustomResource kind"},
		{Name: "ShortNames", Type: "string", Priority: 1, Description: "Short names"},
		{Name: "Established", Type: "boolean", Priority: 1, Description: "Established status"},
	}
}

func (definition) cells(doc []byte, _ func() time.Duration) ([]any, []metav1.TableRowCondition, error) {
	var object struct {
		metav1.PartialObjectMetadata
		Spec struct {
			Group, Scope, Version string
			Names                 struct {
				Kind       string
				ShortNames []string
			}
			Versions []struct {
				Name            string
				Served, Storage bool
			}
		}
		Status struct {
			Conditions []struct{ Type, Status string }
		}
	}
	if err := json.Unmarshal(doc, &object); err != nil {
		return nil, nil, err
	}
	var versions []string
	for _, v := range object.Spec.Versions {
		switch {
		case v.Served && v.Storage:
			versions = append(versions, v.Name+"(storage)")
		case v.Served:
			versions = append(versions, v.Name)
		}
	}
	if len(object.Spec.Versions) == 0 && object.Spec.Version != "" { // the form of early v1beta1
		versions = []string{object.Spec.Version + "(storage)"}
	}
	slices.Sort(versions)
	established := false
	for _, c := range object.Status.Conditions {
		established = established || c.Type == "Established" && c.Status == "True"
	}
	return []any{
		object.Name, object.Spec.Scope, strings.Join(versions, ","), object.CreationTimestamp.UTC().Format(time.RFC3339),
		object.Spec.Group, object.Spec.Names.Kind, strings.Join(object.Spec.Names.ShortNames, ","), established,
	}, nil, nil
}
