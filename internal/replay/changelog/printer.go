package changelog

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"k8s.io/client-go/tools/cache"

	"github.com/kuberewind/kuberewind/internal/render"
	"github.com/kuberewind/kuberewind/internal/replay/entries"
	"github.com/kuberewind/kuberewind/internal/replay/output"
	"github.com/kuberewind/kuberewind/internal/replay/terminal"
	"github.com/kuberewind/kuberewind/internal/replay/words"
)

// logPrinter writes the log in one of its forms.
type logPrinter struct {
	out     io.Writer
	format  string // text, wide or json
	zone    *time.Location
	words   words.Wording
	style   terminal.Style
	objects bool // name the object on each line
	short   bool // times without their date, which a line of its own says once
	width   int  // columns of the terminal; 0 if there is none
	day     string
}

func (p *logPrinter) stamp(t time.Time) string { return t.In(p.zone).Format(output.StampForm) }

// Forms of times for people, and of the line that says which day they are of.
const (
	shortForm = "15:04:05.000"
	dayForm   = "Mon 2006-01-02 -07:00"
)

// time is the time of a delta as its line has it.
func (p *logPrinter) time(t time.Time) string {
	if p.short {
		return t.In(p.zone).Format(shortForm)
	}
	return p.stamp(t)
}

// timeOn is a time that stands in the line of another one.
func (p *logPrinter) timeOn(line, t time.Time) string {
	if line.In(p.zone).Format(time.DateOnly) == t.In(p.zone).Format(time.DateOnly) {
		return t.In(p.zone).Format(shortForm)
	}
	return p.stamp(t)
}

// newDay says which day follows, if the line before was of another one.
func (p *logPrinter) newDay(t time.Time) string {
	day := t.In(p.zone).Format(dayForm)
	if !p.short || day == p.day {
		return ""
	}
	p.day = day
	return "-- " + day + "\n"
}

func (p *logPrinter) json(value any) error { return output.WriteJSON(p.out, value, false) }

// Widths of the columns that a log has before it knows what comes: enough for most, and what is longer pushes the rest.
const (
	typeWidth   = len("Updated")
	whoWidth    = 24
	objectWidth = 36
	// columnsWidth is how many columns a terminal has that can hold these. On a narrower one nothing is padded.
	columnsWidth = 120
)

func (p *logPrinter) entry(e *entries.Entry) error {
	if p.format == output.JSON {
		return p.json(e)
	}
	head, lines := p.head(e), p.lines(e)
	switch {
	case len(lines) == 0:
	case p.fits(head + "  " + lines[0]):
		head, lines = p.coloured(head, e.Type)+"  "+p.style.Change(lines[0]), lines[1:]
	case lines[0] == words.Created:
		head, lines = p.coloured(head, e.Type), lines[1:] // Added says so.
	default:
		head = p.coloured(head, e.Type)
	}
	text := p.newDay(e.OccurredAt) + p.wrap(strings.TrimRight(head, " "), 2*len(output.Indent)) + "\n"
	for _, more := range lines {
		text += p.wrap(output.Indent+p.style.Change(more), 2*len(output.Indent)) + "\n"
	}
	for line := range strings.Lines(e.Diff) {
		text += output.Indent + render.Line(strings.TrimRight(strings.ReplaceAll(line, "\t", "  "), "\n")) + "\n"
	}
	_, err := io.WriteString(p.out, text)
	return err
}

func (p *logPrinter) head(e *entries.Entry) string {
	head := fmt.Sprintf("%1s%s  %-*s  ", output.Mark(e.Estimated, e.Contradictory), p.time(e.OccurredAt), typeWidth, e.Type)
	objects, who := objectWidth, whoWidth
	if p.width > 0 && p.width < columnsWidth {
		objects, who = 0, 0
	}
	if p.objects {
		head += fmt.Sprintf("%-*s  ", objects, e.Kind+" "+output.ObjectName(e.Namespace, e.Name))
	}
	if p.format == output.Wide {
		head += fmt.Sprintf("seq:%-8d rv:%-8s %-8s ", e.Seq, e.ResourceVersion, e.Source)
	}
	return render.Line(head + fmt.Sprintf("%-*s", who, by(e)))
}

// by is who wrote, if that is proved. A question mark stands behind the former owner of what vanished.
func by(e *entries.Entry) string {
	switch {
	case e.Manager != "":
		return words.Writer(e.Manager, e.Subresource)
	case e.ManagerHint != "":
		return e.ManagerHint + "?"
	}
	return "-"
}

// coloured is the head of a line with its type in colour.
func (p *logPrinter) coloured(head, kind string) string {
	paint := map[string]func(string) string{string(cache.Added): p.style.Added, string(cache.Deleted): p.style.Removed}[kind]
	if paint == nil {
		return head
	}
	return strings.Replace(head, kind, paint(kind), 1)
}

// wrap breaks a text so that it fits into the terminal. The lines after the first hang.
func (p *logPrinter) wrap(text string, hanging int) string {
	return terminal.Wrap(text, p.width, hanging)
}

// fits reports whether a line can stand on the terminal as it is.
func (p *logPrinter) fits(line string) bool {
	return p.width == 0 || utf8.RuneCountInString(line) <= p.width
}

// lines are what is said of the delta: all on the first line if it is one thing.
func (p *logPrinter) lines(e *entries.Entry) []string {
	var lines []string
	if e.About != "" {
		lines = append(lines, e.About)
	}
	if last := e.LastManager; last != nil {
		lines[0] += fmt.Sprintf("; last proved writer %s at %s%s", render.Line(words.Writer(last.Manager, last.Subresource)),
			output.Mark(last.Estimated, last.Contradictory), p.timeOn(e.OccurredAt, last.OccurredAt))
	}
	if e.Diff != "" {
		return lines
	}
	for _, c := range e.Shown {
		if len(c.Path) > 0 { // The object as a whole came or went: that was said.
			lines = append(lines, p.words.Of(c))
		}
	}
	if e.Counted > 0 {
		lines = append(lines, "… and "+output.Counted(e.Counted, "change")+" of the status")
	}
	return lines
}

func (p *logPrinter) remark(r entries.Remark) error {
	if p.format == output.JSON {
		return p.json(map[string]entries.Remark{"note": r})
	}
	_, err := fmt.Fprintln(p.out, p.style.Note(p.wrap("-- "+render.Line(r.Text), len("-- "))))
	return err
}

// folded says what was only counted.
func (p *logPrinter) folded(more string) error {
	_, err := fmt.Fprintln(p.out, p.style.Dim(p.wrap("-- "+render.Line(more), len("-- "))))
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
