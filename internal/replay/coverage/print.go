package coverage

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/render"
	"github.com/kuberewind/kuberewind/internal/replay/output"
)

func (c *coverageCommand) print(r *Report) error {
	out := c.env.IOStreams.Out
	if c.output == output.JSON {
		return output.WriteJSON(out, r, true)
	}
	p := coveragePrinter{out: out, zone: c.env.Zone(), wide: c.output == output.Wide}
	return p.print(r)
}

// coveragePrinter writes a report for people.
type coveragePrinter struct {
	out  io.Writer
	zone *time.Location
	wide bool
}

func (p *coveragePrinter) print(r *Report) error {
	var table bytes.Buffer
	w := tabwriter.NewWriter(&table, 0, 0, 3, ' ', 0)
	head := []string{"RESOURCE", "FROM", "TO", "COMPLETE", "WHY"}
	if p.wide {
		head = slices.Insert(head, 3, "FROM RV", "TO RV")
	}
	fmt.Fprintln(w, strings.Join(head, "\t"))
	for i := range r.Resources {
		c := &r.Resources[i]
		for n := range c.Stretches {
			if s := &c.Stretches[n]; p.wide || s.Cause != history.CauseFirstList || s.missing {
				fmt.Fprintln(w, p.row(c, s))
			}
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(table.String()) {
		fmt.Fprintln(p.out, strings.TrimRight(line, " \n"))
	}
	if len(r.Pauses) > 0 {
		fmt.Fprintln(p.out)
	}
	for _, pause := range r.Pauses {
		fmt.Fprintf(p.out, "Pause from %s to %s, after seq %d: times of what was caught up on are estimates.\n", p.stamp(pause.From), p.stamp(pause.To), pause.AfterSeq)
	}
	_, err := fmt.Fprintf(p.out, "\n%s\n", r.summary())
	return err
}

func (p *coveragePrinter) row(c *resourceCoverage, s *Stretch) string {
	name := schema.GroupResource{Group: c.Group, Resource: c.Resource}.String()
	if c.Scope != "" {
		name += " in " + c.Scope
	}
	from, to := p.stamp(s.From), p.stamp(s.To)
	if s.From.IsZero() {
		from = "-"
	}
	switch {
	case s.To.IsZero() && s.Live:
		to = "now"
	case s.To.IsZero():
		to = "-"
	}
	complete := "no"
	if s.Complete {
		complete = "yes"
	}
	cells := []string{name, from, to, complete, render.Line(s.why())}
	if p.wide {
		cells = slices.Insert(cells, 3, dash(s.FromRV), dash(s.ToRV))
	}
	return strings.Join(cells, "\t")
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func (p *coveragePrinter) stamp(t time.Time) string { return t.In(p.zone).Format(output.StampForm) }

// why is what is known of a hole.
func (s *Stretch) why() string {
	why := s.Cause
	if s.Detail != "" {
		why += ": " + s.Detail
	}
	switch s.Outcome {
	case "equal":
		why += "; a list then held nothing new"
	case "relisted":
		why += fmt.Sprintf("; a list then showed %d new, %d changed, %d vanished, %d unchanged", s.Appeared, s.Changed, s.Vanished, s.Unchanged)
	}
	return why
}

// summary is one sentence.
func (r *Report) summary() string {
	complete, holes, leftOut := 0, 0, 0
	for i := range r.Resources {
		c := &r.Resources[i]
		switch {
		case c.Complete:
			complete++
		case !slices.ContainsFunc(c.Stretches, func(s Stretch) bool { return s.missing }):
			leftOut++
		default:
			holes++
		}
	}
	text := fmt.Sprintf("%d resources are complete from their first list on", complete)
	if r.Complete {
		text = fmt.Sprintf("Complete: %s, each from its first list on", output.Counted(complete, "resource"))
	}
	if holes > 0 {
		text += fmt.Sprintf(", %d with gaps", holes)
	}
	if leftOut > 0 {
		text += fmt.Sprintf(", %d were left out by configuration", leftOut)
	}
	switch len(r.Pauses) {
	case 0:
	case 1:
		text += "; the recorder paused once"
	default:
		text += fmt.Sprintf("; the recorder paused %d times", len(r.Pauses))
	}
	return text + "."
}
