package coverage

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/internal/render"
	"github.com/kuberewind/kuberewind/internal/replay/output"
	"github.com/kuberewind/kuberewind/internal/terminal"
)

func (c *coverageCommand) print(r *Report, verdict string) error {
	out := c.env.IOStreams.Out
	if c.output == output.JSON {
		return output.WriteJSON(out, r, true)
	}
	p := coveragePrinter{out: out, zone: c.env.Zone(), wide: c.output == output.Wide, width: c.env.Width(), style: c.env.Style()}
	return p.print(r, verdict)
}

// coveragePrinter writes a report for people.
type coveragePrinter struct {
	out   io.Writer
	zone  *time.Location
	wide  bool
	width int // columns of the terminal; 0 without a terminal
	style terminal.Style
}

func (p *coveragePrinter) print(r *Report, verdict string) error {
	paint := p.style.Added
	if !r.Complete {
		paint = p.style.Removed
	}
	fmt.Fprintln(p.out, paint(terminal.Wrap(verdict, p.width, len(output.Indent))))
	if err := p.table(r); err != nil {
		return err
	}
	var b strings.Builder
	if len(r.Pauses) > 0 {
		b.WriteByte('\n')
	}
	for _, pause := range r.Pauses {
		line := fmt.Sprintf("Pause from %s to %s, after seq %d: the recorder caught up afterwards, and these times are estimates.", p.stamp(pause.From), p.stamp(pause.To), pause.AfterSeq)
		b.WriteString(terminal.Wrap(line, p.width, len(output.Indent)) + "\n")
	}
	_, err := io.WriteString(p.out, b.String())
	return err
}

// table prints a row for each stretch, or nothing if there are none.
func (p *coveragePrinter) table(r *Report) error {
	var table bytes.Buffer
	w := tabwriter.NewWriter(&table, 0, 0, 3, ' ', 0)
	head := []string{"RESOURCE", "FROM", "TO", "COMPLETE", "WHY"}
	if p.wide {
		head = slices.Insert(head, 3, "FROM RV", "TO RV")
	}
	fmt.Fprintln(w, "\n"+strings.Join(head, "\t"))
	rows := 0
	for i := range r.Resources {
		c := &r.Resources[i]
		for n := range c.Stretches {
			if s := &c.Stretches[n]; p.shows(s) {
				fmt.Fprintln(w, p.row(c, s))
				rows++
			}
		}
	}
	if err := w.Flush(); err != nil || rows == 0 {
		return err
	}
	var b strings.Builder
	for line := range strings.Lines(table.String()) {
		b.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	text := incomplete.ReplaceAllString(terminal.FoldTables(b.String(), p.width), "${1}"+p.style.Removed("no"))
	_, err := io.WriteString(p.out, text)
	return err
}

// incomplete matches the cell of a stretch that is not complete.
var incomplete = regexp.MustCompile(`(?m)(  )no\b`)

// shows reports whether the table has a row for a stretch. Only the wide table has rows for the time before a first list
// and after the end of the record. The verdict names that end.
func (p *coveragePrinter) shows(s *Stretch) bool {
	return p.wide || s.missing || s.Cause != delta.CauseFirstList && !s.after
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
	cells := []string{name, from, to, complete, render.Line(reason(s))}
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

// reason returns the known reason of a gap.
func reason(s *Stretch) string {
	why := string(s.Cause)
	if s.Detail != "" {
		why += ": " + s.Detail
	}
	switch {
	case s.Outcome == delta.OutcomeEqual:
		why += "; a list then held nothing new"
	case s.Outcome == delta.OutcomeRelisted && s.Appeared+s.Changed+s.Vanished+s.Unchanged > 0: // A rollback ends a gap without a list.
		why += fmt.Sprintf("; a list then showed %d new, %d changed, %d vanished, %d unchanged", s.Appeared, s.Changed, s.Vanished, s.Unchanged)
	}
	return why
}

// verdict returns one sentence about the completeness of the answer, and one for each resource that is not in the record.
func (r *Report) verdict(zone *time.Location) string {
	var sentences []string
	for i := range r.Resources {
		if c := &r.Resources[i]; c.unrecorded {
			sentences = append(sentences, c.absence())
		}
	}
	if len(sentences) == 0 || len(sentences) < len(r.Resources) {
		sentences = append([]string{r.summary(zone)}, sentences...)
	}
	return strings.Join(sentences, " ")
}

// absence returns a sentence that explains why a resource is not in the record.
func (c *resourceCoverage) absence() string {
	name := schema.GroupResource{Group: c.Group, Resource: c.Resource}
	for _, s := range slices.Backward(c.Stretches) {
		if s.Cause == delta.CauseConfiguration {
			return fmt.Sprintf("Not recorded: %s. The recorder's settings exclude it: %s.", name, render.Line(s.Detail))
		}
	}
	return fmt.Sprintf("Not recorded: %s. The recorder never saw it, though the server offered it.", name)
}

// summary returns one sentence about the recorded resources.
func (r *Report) summary(zone *time.Location) string {
	complete, lacking, excluded := 0, 0, 0
	for i := range r.Resources {
		c := &r.Resources[i]
		switch {
		case c.unrecorded:
		case c.Complete:
			complete++
		case !c.isIncomplete():
			excluded++
		default:
			lacking++
		}
	}
	end := r.end()
	text := fmt.Sprintf("%s, each from its first list on", output.Counted(complete, "resource"))
	switch {
	case lacking > 0:
		text = fmt.Sprintf("Not complete: %d of %s with gaps", lacking, output.Counted(complete+lacking, "resource"))
		if !end.IsZero() {
			text += "; recording stopped at " + end.In(zone).Format(output.StampForm)
		}
	case end.IsZero():
		text = "Complete: " + text
	default:
		text = "Complete until " + end.In(zone).Format(output.StampForm) + ", when recording stopped: " + text
	}
	if excluded > 0 {
		text += fmt.Sprintf("; configuration excludes %d", excluded)
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

// end returns the end of the record, or zero while a recorder runs.
func (r *Report) end() (end time.Time) {
	for i := range r.Resources {
		for _, s := range r.Resources[i].Stretches {
			if s.after && (end.IsZero() || s.From.Before(end)) {
				end = s.From
			}
		}
	}
	return end
}

// isIncomplete reports whether versions in the requested time may be missing.
func (c *resourceCoverage) isIncomplete() bool {
	return slices.ContainsFunc(c.Stretches, func(s Stretch) bool { return s.missing })
}
