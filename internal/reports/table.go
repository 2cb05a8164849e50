package reports

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/kuberewind/kuberewind/internal/terminal"
)

// table prints aligned columns, three spaces apart as kubectl does. On a terminal, the lines fit.
type table struct {
	out     io.Writer
	text    *bytes.Buffer
	w       *tabwriter.Writer // writes to text
	last    []string          // the last cell of each line of text
	hasHead bool
}

func newTable(out io.Writer) *table {
	text := &bytes.Buffer{}
	return &table{out: out, text: text, w: tabwriter.NewWriter(text, 0, 0, 3, ' ', 0)}
}

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
	t.last = append(t.last, cells[len(cells)-1])
	fmt.Fprintln(t.w, strings.TrimRight(strings.Join(cells, "\t"), "\t"))
}

// gap prints an empty line. The columns after it get new widths.
func (t *table) gap() {
	t.last = append(t.last, "")
	fmt.Fprintln(t.w)
}

func (t *table) flush() error {
	if err := t.w.Flush(); err != nil {
		return err
	}
	_, err := io.WriteString(t.out, t.wrapped(terminal.Width(t.out)))
	return err
}

// wrapped returns the text in lines that fit. Width 0 means that there is no limit. The last cells are wrapped within their column. If
// that has less than half of the width, the table is folded between its columns.
func (t *table) wrapped(width int) string {
	if width == 0 {
		return t.text.String()
	}
	var wrapped strings.Builder
	row := 0
	for line := range strings.Lines(t.text.String()) {
		columns := terminal.Columns(strings.TrimSuffix(line, "\n"))
		last := columns - terminal.Columns(t.last[row])
		if columns > width && last > width/2 {
			return terminal.FoldTables(t.text.String(), width)
		}
		wrapped.WriteString(terminal.Wrap(line, width, last))
		row++
	}
	return wrapped.String()
}
