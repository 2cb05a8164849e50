package get

import (
	"bytes"
	"io"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/kuberewind/kuberewind/internal/render"
	"github.com/kuberewind/kuberewind/internal/replay/output"
	"github.com/kuberewind/kuberewind/internal/telemetry"
	"github.com/kuberewind/kuberewind/internal/terminal"
)

func (g *getCommand) format() string { return strings.ToLower(*g.kubectl.PrintFlags.OutputFormat) }

// printsWhole reports whether the output holds whole objects.
func (g *getCommand) printsWhole() bool {
	switch g.format() {
	case "json", "yaml", "kyaml":
		return true
	}
	return false
}

// printsTables reports whether the output has columns.
func (g *getCommand) printsTables() bool {
	format := g.format()
	return format == "" || format == output.Wide || strings.HasPrefix(format, "custom-columns")
}

// writeFolded writes tables so that they fit into the terminal.
func writeFolded(out io.Writer, tables *bytes.Buffer, width int) error {
	if tables.Len() == 0 {
		return nil
	}
	_, err := io.WriteString(out, terminal.FoldTables(tables.String(), width))
	return err
}

// renderOutput wraps kubectl's printers. kubectl's YAML printer reads JSON as YAML: it rejects controls and changes U+0085.
// So kubectl prints JSON, and rendered converts it to YAML. Call it after kubectl has parsed its flags.
func (g *getCommand) renderOutput() {
	format := g.format()
	switch format {
	case "", "wide":
		return // see harmless
	case "yaml":
		*g.kubectl.PrintFlags.OutputFormat = "json"
	}
	kubectl := g.kubectl.ToPrinter
	g.kubectl.ToPrinter = func(mapping *meta.RESTMapping, outputObjects *bool, withNamespace, withKind bool) (printers.ResourcePrinterFunc, error) {
		printer, err := kubectl(mapping, outputObjects, withNamespace, withKind)
		return func(object runtime.Object, out io.Writer) error {
			return g.printRendered(format, printer, object, out)
		}, err
	}
}

func (g *getCommand) printRendered(format string, printer printers.ResourcePrinterFunc, object runtime.Object, out io.Writer) error {
	if format == "name" {
		if err := harmlessName(object); err != nil {
			return err
		}
	}
	var text bytes.Buffer
	if err := printer(object, &text); err != nil {
		return err
	}
	rendered, err := g.rendered(format, text.Bytes())
	if err != nil {
		return err
	}
	_, err = out.Write(rendered)
	return err
}

// rendered converts kubectl's output to the form of the answer.
func (g *getCommand) rendered(format string, text []byte) ([]byte, error) {
	switch format {
	case "json":
		return render.JSON(text), nil
	case "yaml":
		return render.YAML(text)
	case "name":
		return text, nil
	}
	// Templates, custom columns and kyaml are kubectl's. Raw values go to a pipe, but not to a terminal.
	if telemetry.IsTerminal(g.env.IOStreams.Out) {
		return []byte(render.Terminal(string(text))), nil
	}
	return text, nil
}

// harmlessName escapes the names of an object or a list: each stays on one line, and cannot control a terminal.
func harmlessName(object runtime.Object) error {
	if meta.IsListType(object) {
		return meta.EachListItem(object, harmlessName)
	}
	named, err := meta.Accessor(object)
	if err == nil {
		named.SetName(render.Line(named.GetName()))
	}
	return err
}

// harmless escapes a table so that it cannot control a terminal: definitions name columns, objects fill cells.
func harmless(table *metav1.Table) {
	table.ColumnDefinitions = slices.Clone(table.ColumnDefinitions) // the printer owns them
	for i := range table.ColumnDefinitions {
		table.ColumnDefinitions[i].Name = render.Line(table.ColumnDefinitions[i].Name)
	}
	for _, row := range table.Rows {
		for i, cell := range row.Cells {
			if text, ok := cell.(string); ok {
				row.Cells[i] = render.Cell(text)
			}
		}
		if object, err := meta.Accessor(row.Object.Object); err == nil {
			harmlessMetadata(object)
		}
	}
}

// harmlessMetadata escapes the cells that kubectl adds: namespaces and labels.
func harmlessMetadata(object metav1.Object) {
	object.SetNamespace(render.Cell(object.GetNamespace()))
	labels := map[string]string{}
	for key, value := range object.GetLabels() {
		labels[render.Cell(key)] = render.Cell(value)
	}
	object.SetLabels(labels)
}
