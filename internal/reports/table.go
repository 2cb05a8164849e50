package reports

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// table prints aligned columns, three spaces apart as kubectl does.
type table struct {
	w       *tabwriter.Writer
	hasHead bool
}

func newTable(out io.Writer) *table { return &table{w: tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)} }

// titled prints an empty line and the head of a table. Only the first call does so.
func (t *table) titled(cells ...string) {
	if !t.hasHead {
		t.hasHead = true
		t.gap()
		t.row(cells...)
	}
}

// row prints a row on one line. It joins the lines of a cell, because messages of servers and drivers have several.
func (t *table) row(cells ...string) {
	for i, cell := range cells {
		cells[i] = strings.Join(strings.Fields(cell), " ")
	}
	fmt.Fprintln(t.w, strings.TrimRight(strings.Join(cells, "\t"), "\t"))
}

// gap prints an empty line. The columns after it get new widths.
func (t *table) gap() { fmt.Fprintln(t.w) }

func (t *table) flush() error { return t.w.Flush() }
