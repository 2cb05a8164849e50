package main

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
)

// module is the prefix that the table removes from package names.
const module = "github.com/kuberewind/kuberewind/"

// The page shows this many packages and tests, the slowest first.
const pagePackages, pageTests = 15, 20

// The markers of the page, each on a line of its own.
const pageBegin, pageEnd = "<!-- test-times: begin -->\n", "<!-- test-times: end -->\n"

// sorted returns the rows, longest first.
func (r *results) sorted() []row {
	rows := slices.Clone(r.rows)
	slices.SortStableFunc(rows, func(a, b row) int { return cmp.Compare(b.wall, a.wall) })
	return rows
}

// totals returns the rows below the table: all packages together, the rest of the run, and the run.
func (r *results) totals() [][]string {
	var packages row
	for _, x := range r.rows {
		packages.cpu += x.cpu
		packages.daemons += x.daemons
		packages.measured = packages.measured || x.measured
	}
	if r.total.Action == "" {
		return [][]string{{"all packages", "", "-", packages.cpuText(), packages.daemonsText()}}
	}
	run := row{wall: r.total.Elapsed, cpu: r.total.CPU - packages.daemons, daemons: packages.daemons, measured: true}
	building := row{cpu: run.cpu - packages.cpu, measured: true}
	return [][]string{
		{"all packages", "", "-", packages.cpuText(), packages.daemonsText()},
		{"build and link", "", "-", building.cpuText(), "-"},
		{"the whole run", "", run.wallText(), run.cpuText(), run.daemonsText()},
	}
}

func (x row) cells() []string {
	return []string{strings.TrimPrefix(x.pkg, module), x.test, x.wallText(), x.cpuText(), x.daemonsText()}
}

func (x row) wallText() string { return fmt.Sprintf("%.1f", x.wall) }

func (x row) cpuText() string { return x.measuredText(x.cpu) }

func (x row) daemonsText() string { return x.measuredText(x.daemons) }

func (x row) measuredText(seconds float64) string {
	if !x.measured {
		return "-"
	}
	return fmt.Sprintf("%.1f", seconds)
}

var heads = []string{"package", "test", "wall s", "CPU s", "PostgreSQL CPU s"}

func (r *results) print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, strings.Join(heads, "\t"))
	for _, x := range r.sorted() {
		fmt.Fprintln(w, strings.Join(x.cells(), "\t"))
	}
	for _, cells := range r.totals() {
		fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	return w.Flush()
}

// markdown returns the top of the table.
func (r *results) markdown() string {
	var text strings.Builder
	line := func(cells []string) { fmt.Fprintf(&text, "| %s |\n", strings.Join(cells, " | ")) }
	line(heads)
	text.WriteString("|---|---|---:|---:|---:|\n")
	packages, tests := 0, 0
	for _, x := range r.sorted() {
		if x.test == "" {
			packages++
		} else {
			tests++
		}
		if x.test == "" && packages <= pagePackages || x.test != "" && tests <= pageTests {
			line(x.cells())
		}
	}
	for _, cells := range r.totals() {
		line(cells)
	}
	fmt.Fprintf(&text, "\nThe run had %d packages and %d tests. The table has the longest %d packages and %d tests.\n",
		packages, tests, min(packages, pagePackages), min(tests, pageTests))
	return text.String()
}

// writePage replaces the text between the markers.
func writePage(path, page string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // it was only read
	r, err := read(file)
	if err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	text, err = replaceBetween(text, r.markdown())
	if err != nil {
		return fmt.Errorf("write the table to %s: %w", page, err)
	}
	return os.WriteFile(page, text, 0o644)
}

func replaceBetween(page []byte, text string) ([]byte, error) {
	before, rest, begun := bytes.Cut(page, []byte(pageBegin))
	_, after, ended := bytes.Cut(rest, []byte(pageEnd))
	if !begun || !ended {
		return nil, fmt.Errorf("it has no line %q with a line %q after it", strings.TrimSpace(pageBegin), strings.TrimSpace(pageEnd))
	}
	return slices.Concat(before, []byte(pageBegin+"\n"+text+"\n"+pageEnd), after), nil
}
