package reports

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// table has aligned columns, three spaces apart as kubectl's.
type table struct {
	w       *tabwriter.Writer
	hasHead bool
}

func newTable(out io.Writer) *table { return &table{w: tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)} }

// titled puts a head over the first row, after an empty line.
func (t *table) titled(cells ...string) {
	if !t.hasHead {
		t.hasHead = true
		t.gap()
		t.row(cells...)
	}
}

// row keeps a row on one line: messages of servers and drivers come with several.
func (t *table) row(cells ...string) {
	for i, cell := range cells {
		cells[i] = strings.Join(strings.Fields(cell), " ")
	}
	fmt.Fprintln(t.w, strings.TrimRight(strings.Join(cells, "\t"), "\t"))
}

// gap is an empty line; the columns after it are as wide as they need to be.
func (t *table) gap() { fmt.Fprintln(t.w) }

func (t *table) flush() error { return t.w.Flush() }
