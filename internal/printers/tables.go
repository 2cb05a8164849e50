package printers

import (
	"cmp"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Tables makes tables as of one instant.
type Tables struct {
	instant    time.Time
	definition func(schema.GroupResource) []byte
	builtin    *builtin
}

// New returns Tables for an instant. definition returns the CustomResourceDefinition of a resource at that instant, as JSON,
// nil if there is none. definition may be nil.
func New(instant time.Time, definition func(schema.GroupResource) []byte) *Tables {
	if definition == nil {
		definition = func(schema.GroupResource) []byte { return nil }
	}
	return &Tables{instant: instant, definition: definition, builtin: newBuiltin()}
}

// A style makes the cells of the objects of one kind and version.
type style interface {
	columns() []metav1.TableColumnDefinition
	// cells returns one cell for each column. shift returns by how much a printer that reads the wall clock must move the
	// times of the object.
	cells(doc []byte, shift func() time.Duration) (cells []any, conditions []metav1.TableRowCondition, err error)
}

// Make makes the table of objects of one resource. include is the API server's parameter includeObject: the parts of the
// object that a row carries.
func (t *Tables) Make(resource schema.GroupResource, objects iter.Seq2[string, []byte], include metav1.IncludeObjectPolicy) (*metav1.Table, error) {
	table := &metav1.Table{TypeMeta: metav1.TypeMeta{APIVersion: metav1.SchemeGroupVersion.String(), Kind: "Table"}, Rows: []metav1.TableRow{}}
	printers := map[schema.GroupVersionKind]*Printer{}
	for key, doc := range objects {
		meta := &metav1.PartialObjectMetadata{}
		if err := json.Unmarshal(doc, meta); err != nil {
			return nil, fmt.Errorf("%s %s: %w", resource, key, err)
		}
		gvk := meta.GroupVersionKind()
		if printers[gvk] == nil {
			printers[gvk] = t.Printer(resource, gvk)
		}
		if table.ColumnDefinitions == nil {
			table.ColumnDefinitions = printers[gvk].Columns
		}
		printers[gvk].Columns = table.ColumnDefinitions // another version can have other columns
		row, err := printers[gvk].Row(doc)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", resource, key, err)
		}
		object, err := carried(include, meta, doc)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", resource, key, err)
		}
		row.Object = runtime.RawExtension{Object: object}
		table.Rows = append(table.Rows, row)
	}
	if Sorted(resource) {
		byPrecedence(table)
	}
	return table, nil
}

var flowSchemas = schema.GroupResource{Group: "flowcontrol.apiserver.k8s.io", Resource: "flowschemas"}

// Sorted reports whether the rows of a resource's table have another order than its list. Then the first row is known only
// after all rows.
func Sorted(resource schema.GroupResource) bool { return resource == flowSchemas }

// byPrecedence sorts FlowSchemas in the order in which the server tries them, like the printer of their list. No other
// printer changes the order of a list.
func byPrecedence(table *metav1.Table) {
	column := slices.IndexFunc(table.ColumnDefinitions, func(c metav1.TableColumnDefinition) bool { return c.Name == "MatchingPrecedence" })
	if column < 0 {
		return
	}
	slices.SortStableFunc(table.Rows, func(a, b metav1.TableRow) int {
		x, _ := a.Cells[column].(int64)
		y, _ := b.Cells[column].(int64)
		return cmp.Compare(x, y)
	})
}

// Empty returns the columns and rows of a table without objects. If the API server does not use one of its usual printers
// for the resource, the rows are nil.
func (t *Tables) Empty(resource schema.GroupResource, gvk schema.GroupVersionKind) ([]metav1.TableColumnDefinition, []metav1.TableRow) {
	columns := t.style(resource, gvk).columns()
	if createdAtOnly[resource] || resource == definitions {
		return columns, nil
	}
	return columns, []metav1.TableRow{}
}

// A Printer makes the rows of objects of one kind and version, without the object that a row carries.
type Printer struct {
	tables  *Tables
	style   style
	Columns []metav1.TableColumnDefinition
}

// Printer returns the Printer of a kind of a resource.
func (t *Tables) Printer(resource schema.GroupResource, gvk schema.GroupVersionKind) *Printer {
	s := t.style(resource, gvk)
	return &Printer{tables: t, style: s, Columns: s.columns()}
}

// Row makes the row of an object. If the printer of the kind fails, the row has only name and age.
func (p *Printer) Row(doc []byte) (metav1.TableRow, error) {
	cells, conditions, err := p.style.cells(doc, p.tables.shift)
	if err == nil && len(cells) >= len(p.Columns) { // the printer of IPAddresses has a cell more than columns
		return metav1.TableRow{Cells: cells, Conditions: conditions}, nil
	}
	meta := &metav1.PartialObjectMetadata{}
	if err := json.Unmarshal(doc, meta); err != nil {
		return metav1.TableRow{}, err
	}
	cells = make([]any, len(p.Columns))
	for i, column := range p.Columns {
		switch column.Name {
		case "Name":
			cells[i] = meta.Name
		case ageColumn:
			cells[i] = age(meta.CreationTimestamp, p.tables.shift())
		}
	}
	return metav1.TableRow{Cells: cells}, nil
}

// shift returns the age of the instant. Row reads it for each row, because a table takes time.
func (t *Tables) shift() time.Duration { return time.Since(t.instant) }

func (t *Tables) style(resource schema.GroupResource, gvk schema.GroupVersionKind) style {
	switch {
	case createdAtOnly[resource]:
		return createdAt{}
	case resource == apiServices:
		return apiService{}
	case resource == definitions:
		return definition{}
	case resource == CustomScales:
		if s, err := printing(scaleColumns); err == nil {
			return s
		}
	}
	if s, ok := t.builtin.style(gvk); ok {
		return s
	}
	if definition := t.definition(resource); definition != nil {
		if s, err := newCustom(definition, gvk.Version); err == nil {
			return s
		}
	}
	return generic{}
}

// carried returns the part of an object that a row carries.
func carried(include metav1.IncludeObjectPolicy, meta *metav1.PartialObjectMetadata, doc []byte) (runtime.Object, error) {
	switch include {
	case metav1.IncludeNone:
		return nil, nil
	case metav1.IncludeObject:
		object := &unstructured.Unstructured{}
		return object, object.UnmarshalJSON(doc)
	default:
	}
	meta.TypeMeta = metav1.TypeMeta{APIVersion: metav1.SchemeGroupVersion.String(), Kind: "PartialObjectMetadata"}
	return meta, nil
}
