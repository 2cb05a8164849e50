package changelog

import (
	"fmt"
	"io"
	"strings"
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/kuberewind/kuberewind/internal/render"
	"github.com/kuberewind/kuberewind/internal/replay/entries"
	"github.com/kuberewind/kuberewind/internal/replay/output"
	"github.com/kuberewind/kuberewind/internal/replay/words"
)

// logPrinter writes the log in one of its forms.
type logPrinter struct {
	out     io.Writer
	format  string // text, wide or json
	zone    *time.Location
	words   words.Wording
	objects bool // name the object on each line
}

func (p *logPrinter) stamp(t time.Time) string { return t.In(p.zone).Format(output.StampForm) }

func (p *logPrinter) json(value any) error { return output.WriteJSON(p.out, value, false) }

// Widths of the columns that a log has before it knows what comes: enough for most, and what is longer pushes the rest.
const (
	typeWidth   = len("Updated")
	whoWidth    = 24
	objectWidth = 36
)

func (p *logPrinter) entry(e *entries.Entry) error {
	if p.format == output.JSON {
		return p.json(e)
	}
	head := p.head(e)
	lines := p.lines(e)
	var b strings.Builder
	b.WriteString(head)
	if len(lines) > 0 {
		b.WriteString("  " + lines[0])
	}
	text := strings.TrimRight(b.String(), " ") + "\n"
	for _, more := range lines[min(1, len(lines)):] {
		text += output.Indent + more + "\n"
	}
	for line := range strings.Lines(e.Diff) {
		text += output.Indent + render.Line(strings.TrimRight(strings.ReplaceAll(line, "\t", "  "), "\n")) + "\n"
	}
	_, err := io.WriteString(p.out, text)
	return err
}

func (p *logPrinter) head(e *entries.Entry) string {
	mark := " "
	if e.Estimated {
		mark = "~"
	}
	by := words.Writer(e.Manager, e.Subresource)
	if by == "" || e.Type == string(cache.Deleted) { // Who deletes leaves no entry.
		by = "-"
	}
	head := fmt.Sprintf("%s%s  %-*s  ", mark, p.stamp(e.OccurredAt), typeWidth, e.Type)
	if p.objects {
		head += fmt.Sprintf("%-*s  ", objectWidth, e.Kind+" "+output.ObjectName(e.Namespace, e.Name))
	}
	if p.format == output.Wide {
		head += fmt.Sprintf("seq:%-8d rv:%-8s %-8s ", e.Seq, e.ResourceVersion, e.Source)
	}
	return render.Line(head + fmt.Sprintf("%-*s", whoWidth, by))
}

// lines are what is said of the delta: all on the first line if it is one thing.
func (p *logPrinter) lines(e *entries.Entry) []string {
	var lines []string
	if e.About != "" {
		lines = append(lines, e.About)
	}
	if e.Diff != "" {
		return lines
	}
	for _, c := range e.Shown {
		if len(c.Path) > 0 { // The object as a whole came or went: that was said.
			lines = append(lines, p.words.Of(c))
		}
	}
	return lines
}

func (p *logPrinter) remark(r entries.Remark) error {
	if p.format == output.JSON {
		return p.json(map[string]entries.Remark{"note": r})
	}
	_, err := fmt.Fprintf(p.out, "-- %s\n", render.Line(r.Text))
	return err
}

// title stands over the deltas of one life. In JSON each line says whose it is.
func (p *logPrinter) title(text string) error {
	if p.format == output.JSON {
		return nil
	}
	_, err := fmt.Fprintln(p.out, text)
	return err
}
