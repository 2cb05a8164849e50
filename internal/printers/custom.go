package printers

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresource/tableconvertor"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// defaultColumns are the columns that the API server uses for definitions without printer columns.
var defaultColumns = []apiextensionsv1.CustomResourceColumnDefinition{{Name: ageColumn, Type: "date", JSONPath: ".metadata.creationTimestamp"}}

type convertor interface {
	ConvertToTable(ctx context.Context, object, options runtime.Object) (*metav1.Table, error)
}

// custom makes cells from the printer columns of a definition.
type custom struct {
	convertor   convertor
	definitions []metav1.TableColumnDefinition
}

// newCustom reads the columns of one version from a CustomResourceDefinition, v1 or v1beta1.
func newCustom(definition []byte, version string) (*custom, error) {
	columns, err := columnsOf(definition, version)
	if err != nil {
		return nil, err
	}
	if len(columns) > 0 {
		return printing(columns)
	}
	c, err := printing(defaultColumns)
	if err == nil {
		c.definitions[1].Description = described["creationTimestamp"]
	}
	return c, err
}

// CustomScales are the Scales of custom resources. Their table has its own columns. If 0 replicas are desired, the cell is
// null.
var CustomScales = schema.GroupResource{Group: apiextensionsv1.GroupName, Resource: "scales"}

// scaleColumns are the columns of getScaleColumnsForVersion in k8s.io/apiextensions-apiserver.
var scaleColumns = []apiextensionsv1.CustomResourceColumnDefinition{
	{Name: "Desired", Type: "integer", Description: "Number of desired replicas", JSONPath: ".spec.replicas"},
	{Name: "Available", Type: "integer", Description: "Number of actual replicas", JSONPath: ".status.replicas"},
	{Name: ageColumn, Type: "date", Description: described["creationTimestamp"], JSONPath: ".metadata.creationTimestamp"},
}

// printing returns a style with the given columns.
func printing(columns []apiextensionsv1.CustomResourceColumnDefinition) (*custom, error) {
	c, err := tableconvertor.New(columns)
	if err != nil {
		return nil, err
	}
	empty, err := c.ConvertToTable(context.Background(), &unstructured.UnstructuredList{}, nil)
	if err != nil {
		return nil, err
	}
	return &custom{convertor: c, definitions: empty.ColumnDefinitions}, nil
}

func columnsOf(definition []byte, version string) ([]apiextensionsv1.CustomResourceColumnDefinition, error) {
	type column struct {
		apiextensionsv1.CustomResourceColumnDefinition `json:",inline"`
		OldJSONPath                                    string `json:"JSONPath"` // v1beta1's spelling
	}
	var crd struct {
		Spec struct {
			AdditionalPrinterColumns []column `json:"additionalPrinterColumns"` // v1beta1; for all versions
			Versions                 []struct {
				Name                     string   `json:"name"`
				AdditionalPrinterColumns []column `json:"additionalPrinterColumns"`
			} `json:"versions"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(definition, &crd); err != nil {
		return nil, fmt.Errorf("definition: %w", err)
	}
	found := crd.Spec.AdditionalPrinterColumns
	for _, v := range crd.Spec.Versions {
		if v.Name == version && len(v.AdditionalPrinterColumns) > 0 {
			found = v.AdditionalPrinterColumns
		}
	}
	columns := make([]apiextensionsv1.CustomResourceColumnDefinition, len(found))
	for i, c := range found {
		columns[i] = c.CustomResourceColumnDefinition
		if columns[i].JSONPath == "" {
			columns[i].JSONPath = c.OldJSONPath
		}
	}
	return columns, nil
}

func (c *custom) columns() []metav1.TableColumnDefinition { return c.definitions }

// cells prints the object twice. A column of type date needs shifted times. Any other column needs the unchanged object,
// because a time may be part of a string.
func (c *custom) cells(doc []byte, shift func() time.Duration) ([]any, []metav1.TableRowCondition, error) {
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(doc); err != nil {
		return nil, nil, err
	}
	cells, err := c.print(object)
	if err != nil {
		return nil, nil, err
	}
	shiftStrings(object.Object, shift())
	dates, err := c.print(object)
	if err != nil {
		return nil, nil, err
	}
	for i, column := range c.definitions {
		if column.Type == "date" {
			cells[i] = dates[i]
		}
	}
	return cells, nil, nil
}

func (c *custom) print(object *unstructured.Unstructured) ([]any, error) {
	table, err := c.convertor.ConvertToTable(context.Background(), object, nil)
	if err != nil {
		return nil, err
	}
	if len(table.Rows) != 1 {
		return nil, fmt.Errorf("%d rows for one object", len(table.Rows))
	}
	return table.Rows[0].Cells, nil
}

// shiftStrings shifts every string that is a time, in place, and returns the value.
func shiftStrings(value any, by time.Duration) any {
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			v[key] = shiftStrings(inner, by)
		}
	case []any:
		for i, inner := range v {
			v[i] = shiftStrings(inner, by)
		}
	case string:
		if len(v) < len("2006-01-02T15:04:05Z") {
			return v
		}
		if t, err := time.Parse(time.RFC3339, v); err == nil {
			// Keep the fraction: rounding down would make the time older.
			return t.Add(by).UTC().Format(time.RFC3339Nano)
		}
	}
	return value
}
