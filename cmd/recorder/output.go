package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/kuberewind/kuberewind/internal/render"
)

// outputFlag is --output, as kubectl has it.
type outputFlag struct{ format string }

func (o *outputFlag) add(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&o.format, "output", "o", "", "json, yaml, or wide for a table with everything; what matters when empty")
}

// validate comes before the work whose result is to be printed.
func (o *outputFlag) validate() error {
	switch o.format {
	case "", "wide", "json", "yaml":
		return nil
	}
	return usageError{fmt.Errorf("--output %q is none of json, yaml, wide", o.format)}
}

// print writes the value in the format asked for, or calls table.
func (p *program) print(o outputFlag, value any, table func(wide bool) error) error {
	var text []byte
	var err error
	switch o.format {
	case "json":
		text, err = json.MarshalIndent(value, "", "  ")
		text = append(render.JSON(text), '\n')
	case "yaml":
		if text, err = json.Marshal(value); err == nil {
			text, err = render.YAML(text)
		}
	default:
		return table(o.format == "wide")
	}
	if err != nil {
		return err
	}
	_, err = p.out.Write(text)
	return err
}

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
