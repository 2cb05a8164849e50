package measure

import (
	"fmt"
	"io"
	"strings"
)

const pageHead = `# Performance

This page compares the cost of recording and replaying with the alternatives: in one run, on one machine, in turn. [METHODOLOGY.md](../METHODOLOGY.md) says
how, on what data, and what the figures do not show. Times and rates are those of this machine; it is the ratios that can be taken elsewhere.

`

const pageNext = `
[METHODOLOGY.md](../METHODOLOGY.md#how) says what the verdicts mean, and [why](../METHODOLOGY.md#where-it-falls-short) something does not hold;
[sizing.md](../../docs/sizing.md) says how large a record grows. This page is made by the suite:

`

// usual is the size that needs not be named.
const usual = "middle"

// Page writes the report as a page of the documentation: limits and results first, then all tables. Charts are in a folder as
// the page sees it. It names the incomplete measures.
func (r *Report) Page(w io.Writer, charts string, measures []string) error {
	if _, err := io.WriteString(w, pageHead); err != nil {
		return err
	}
	if err := r.reached().markdown(w); err != nil {
		return err
	}
	size := ""
	if r.Size != usual {
		size = " SIZE=" + r.Size
	}
	if _, err := io.WriteString(w, pageNext); err != nil {
		return err
	}
	for _, c := range [][2]string{
		{"bench-recording", "records a control plane, to measure on as well"},
		{"bench" + size, "measures, and keeps what it measured; where it was interrupted, it goes on"},
		{"bench-load" + size, "measure 12, by itself"},
		{"bench-docs" + size, "writes this page, and its charts"},
	} {
		fmt.Fprintf(w, "    make %-23s # %s\n", c[0], c[1])
	}
	fmt.Fprintln(w)
	for _, line := range r.origin() {
		fmt.Fprintf(w, "- %s\n", line)
	}
	if missing := r.Missing(measures); len(missing) > 0 {
		fmt.Fprintf(w, "- not measured, or not all of it: %s\n", strings.Join(missing, ", "))
	}
	for _, result := range r.Results {
		if err := result.markdown(w, charts); err != nil {
			return err
		}
	}
	return nil
}

// reached is the table of everything that has to hold.
func (r *Report) reached() grid {
	g := grid{{"measure", "", "on", "must reach", "aim", "reached", "verdict"}}
	for _, result := range r.Results {
		for _, j := range result.Judged {
			if j.Bound() {
				g = append(g, []string{j.Number, j.What, result.Data, j.bound(), j.aim(), j.value(j.Value), string(j.Verdict)})
			}
		}
	}
	return g
}

func (r *Result) markdown(w io.Writer, charts string) error {
	numbers := strings.Join(r.Origin.Measures, ", ")
	fmt.Fprintf(w, "\n## %s: %s\n\n%s\n\n", numbers, r.Title, r.origin())
	if err := r.values().markdown(w); err != nil {
		return err
	}
	if len(r.Judged) > 0 {
		fmt.Fprintln(w)
		if err := r.judgements().markdown(w); err != nil {
			return err
		}
	}
	if len(r.charts()) > 0 {
		fmt.Fprintf(w, "\n![%s](%s/%s)\n", r.Title, charts, r.chartFile())
	}
	return nil
}
