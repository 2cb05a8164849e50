package apiserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kuberewind/kuberewind/apiserver/internal/state"
	"github.com/kuberewind/kuberewind/internal/printers"
	"github.com/kuberewind/kuberewind/patch"
)

// tableForm writes tables.
type tableForm struct {
	call    *call
	whole   *wholeForm
	version string
	include metav1.IncludeObjectPolicy
	headed  bool // a watch sends the columns only once
}

func (f *tableForm) one(ctx context.Context, e *state.Entry) ([]byte, error) {
	table, err := f.table(ctx, func(yield func(*state.Entry) bool) { yield(e) })
	if err != nil {
		return nil, err
	}
	if rv, ok := patch.Get(e.Body, "/metadata/resourceVersion"); ok {
		text, _ := patch.Unquote(rv)
		table.ResourceVersion = string(text)
	}
	if f.headed && f.call.resource.Kind.Group != "apiregistration.k8s.io" { // its printer sends the columns each time
		table.ColumnDefinitions = nil
	}
	f.headed = f.call.options.Watch
	return json.Marshal(table)
}

// list writes one row after the other. A row contains the text of the object, and no table is ever whole in memory.
func (f *tableForm) list(ctx context.Context, w io.Writer, meta metav1.ListMeta, entries iter.Seq[*state.Entry]) error {
	next, stop := iter.Pull(entries)
	defer stop()
	first, ok := next()
	if !ok || printers.Sorted(f.call.resource.GroupResource()) {
		return f.listWhole(ctx, w, meta, rest(first, ok, next))
	}
	tables, failed := f.tables(ctx)
	resource := f.call.resource
	printer := func() *printers.Printer { return tables.Printer(resource.GroupResource(), resource.Kind) }
	begin, err := f.head(meta, printer().Columns)
	if err = errors.Join(err, failed()); err != nil {
		return err
	}
	return writeParallel(ctx, w, begin, rest(first, true, next), func() itemWriter { return (&rowWriter{form: f, printer: printer()}).append })
}

// rest returns a sequence with its first entry put back.
func rest(first *state.Entry, ok bool, next func() (*state.Entry, bool)) iter.Seq[*state.Entry] {
	return func(yield func(*state.Entry) bool) {
		for e := first; ok; e, ok = next() {
			if !yield(e) {
				return
			}
		}
	}
}

// listWhole writes an empty table, or a table that needs its own row order.
func (f *tableForm) listWhole(ctx context.Context, w io.Writer, meta metav1.ListMeta, entries iter.Seq[*state.Entry]) error {
	table, err := f.table(ctx, entries)
	if err != nil {
		return err
	}
	table.ListMeta = meta
	return json.NewEncoder(w).Encode(table)
}

// head returns the text of a table up to its rows.
func (f *tableForm) head(meta metav1.ListMeta, columns []metav1.TableColumnDefinition) ([]byte, error) {
	about, err := json.Marshal(meta)
	if err != nil {
		return nil, err
	}
	definitions, err := json.Marshal(columns)
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, `{"kind":"Table","apiVersion":%q,"metadata":%s,"columnDefinitions":%s,"rows":`, f.version, about, definitions), nil
}

// A rowWriter writes rows. Only one goroutine may use it.
type rowWriter struct {
	form    *tableForm
	printer *printers.Printer
	doc     []byte // reused buffer
}

// tables makes tables of the instant. After use, failed returns an error if the definition of a custom resource could not
// be read.
func (f *tableForm) tables(ctx context.Context) (t *printers.Tables, failed func() error) {
	read := sync.OnceValues(func() ([]byte, error) { return f.call.at.definition(ctx, f.call.resource.GroupResource()) })
	var err error
	t = printers.New(f.call.time, func(schema.GroupResource) (doc []byte) {
		doc, err = read()
		return doc
	})
	return t, func() error { return err }
}

// append appends the row of an object.
func (r *rowWriter) append(out []byte, e *state.Entry) ([]byte, error) {
	f := r.form
	var err error
	if r.doc, err = f.call.resource.convert(r.doc[:0], e); err != nil {
		return out, err
	}
	row, err := r.printer.Row(r.doc)
	if err != nil {
		return out, apierrors.NewInternalError(fmt.Errorf("%s: %w", e.Key(), err))
	}
	cells, err := json.Marshal(row.Cells)
	if err != nil {
		return out, err
	}
	out = append(append(out, `{"cells":`...), cells...)
	if len(row.Conditions) > 0 {
		conditions, err := json.Marshal(row.Conditions)
		if err != nil {
			return out, err
		}
		out = append(append(out, `,"conditions":`...), conditions...)
	}
	out = append(out, `,"object":`...)
	switch f.include {
	case metav1.IncludeNone:
		out = append(out, "null"...)
	case metav1.IncludeObject:
		out = append(out, r.doc...)
	default:
		out = (&metadataForm{version: metav1.SchemeGroupVersion.String()}).append(out, e)
	}
	return append(out, '}'), nil
}

func (f *tableForm) table(ctx context.Context, entries iter.Seq[*state.Entry]) (*metav1.Table, error) {
	resource := f.call.resource
	tables, failed := f.tables(ctx)
	var unread error
	table, err := tables.Make(resource.GroupResource(), func(yield func(string, []byte) bool) {
		for e := range entries {
			doc, err := f.whole.one(ctx, e)
			if err != nil {
				unread = err
				return
			}
			if !yield(e.Key(), doc) {
				return
			}
		}
	}, f.include)
	if err := errors.Join(unread, failed()); err != nil {
		return nil, err
	}
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	if len(table.Rows) == 0 {
		table.ColumnDefinitions, table.Rows = tables.Empty(resource.GroupResource(), resource.Kind)
	}
	table.APIVersion = f.version
	return table, nil
}
