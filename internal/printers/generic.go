package printers

import (
	"encoding/json"
	"time"

	metatable "k8s.io/apimachinery/pkg/api/meta/table"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const ageColumn = "Age"

// The API server's descriptions of the columns that it makes from metadata.
var (
	described     = metav1.ObjectMeta{}.SwaggerDoc()
	nameColumn    = metav1.TableColumnDefinition{Name: "Name", Type: "string", Format: "name", Description: described["name"]}
	createdColumn = metav1.TableColumnDefinition{Name: "Created At", Type: "date", Description: described["creationTimestamp"]}
)

// createdAtOnly lists resources for which the server shows the creation time: kube-apiserver has no printer for them, or
// does not use it.
var createdAtOnly = map[schema.GroupResource]bool{
	{Resource: "limitranges"}:                                      true,
	{Group: "rbac.authorization.k8s.io", Resource: "roles"}:        true,
	{Group: "rbac.authorization.k8s.io", Resource: "clusterroles"}: true,
	{Group: "storage.k8s.io", Resource: "csistoragecapacities"}:    true,
}

// createdAt is the API server's default style: name and creation time.
type createdAt struct{}

func (createdAt) columns() []metav1.TableColumnDefinition {
	return []metav1.TableColumnDefinition{nameColumn, createdColumn}
}

func (createdAt) cells(doc []byte, _ func() time.Duration) ([]any, []metav1.TableRowCondition, error) {
	meta := &metav1.PartialObjectMetadata{}
	if err := json.Unmarshal(doc, meta); err != nil {
		return nil, nil, err
	}
	return []any{meta.Name, meta.CreationTimestamp.UTC().Format(time.RFC3339)}, nil, nil
}

// generic is the style of unknown kinds: name and age.
type generic struct{}

func (generic) columns() []metav1.TableColumnDefinition {
	return []metav1.TableColumnDefinition{nameColumn, {Name: ageColumn, Type: "date"}}
}

func (generic) cells(doc []byte, shift func() time.Duration) ([]any, []metav1.TableRowCondition, error) {
	meta := &metav1.PartialObjectMetadata{}
	if err := json.Unmarshal(doc, meta); err != nil {
		return nil, nil, err
	}
	return []any{meta.Name, age(meta.CreationTimestamp, shift())}, nil, nil
}

func age(created metav1.Time, shift time.Duration) string {
	if !created.IsZero() {
		created = metav1.NewTime(created.Add(shift))
	}
	return metatable.ConvertToHumanReadableDateType(created)
}

var apiServices = schema.GroupResource{Group: "apiregistration.k8s.io", Resource: "apiservices"}

// apiService makes the cells of kube-aggregator, whose printer only a server can use.
type apiService struct{}

func (apiService) columns() []metav1.TableColumnDefinition {
	return []metav1.TableColumnDefinition{
		nameColumn, {Name: "Service", Type: "string", Description: "The reference to the service that hosts this API endpoint."},
		{Name: "Available", Type: "string", Description: "Whether this service is available."},
		{Name: ageColumn, Type: "string", Description: described["creationTimestamp"]},
	}
}

func (apiService) cells(doc []byte, shift func() time.Duration) ([]any, []metav1.TableRowCondition, error) {
	var object struct {
		metav1.PartialObjectMetadata
		Spec struct {
			Service *struct{ Namespace, Name string }
		}
		Status struct {
			Conditions []struct{ Type, Status, Reason string }
		}
	}
	if err := json.Unmarshal(doc, &object); err != nil {
		return nil, nil, err
	}
	service, available := "Local", "Unknown"
	if s := object.Spec.Service; s != nil {
		service = s.Namespace + "/" + s.Name
	}
	for _, c := range object.Status.Conditions {
		if c.Type != "Available" {
			continue
		}
		available = c.Status
		if c.Status != "True" && c.Reason != "" {
			available += " (" + c.Reason + ")"
		}
		break
	}
	return []any{object.Name, service, available, age(object.CreationTimestamp, shift())}, nil, nil
}
