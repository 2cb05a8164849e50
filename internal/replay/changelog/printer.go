package changelog

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/internal/render"
	"github.com/kuberewind/kuberewind/internal/replay/entries"
	"github.com/kuberewind/kuberewind/internal/replay/output"
	"github.com/kuberewind/kuberewind/internal/replay/words"
	"github.com/kuberewind/kuberewind/internal/terminal"
)

// logPrinter writes the log in one of its forms.
type logPrinter struct {
	out     io.Writer
	format  string // text, wide or json
	zone    *time.Location
	words   words.Wording
	style   terminal.Style
	objects bool    // name the object on each line
	screen  *screen // nil if the output is no terminal
	merge   bool    // print equal deltas of siblings on one line
	groups  groups
	day     string // the last printed day; on a terminal, a day has its own line, and times have no date
}

func (p *logPrinter) stamp(t time.Time) string { return t.In(p.zone).Format(output.StampForm) }

// The forms of times for people, and of the line with the day.
const (
	shortForm = "15:04:05.000"
	dayForm   = "Mon 2006-01-02 -07:00"
)

// time formats the time of a delta for its line.
func (p *logPrinter) time(t time.Time) string {
	if p.screen != nil {
		return t.In(p.zone).Format(shortForm)
	}
	return p.stamp(t)
}

// timeOn formats a time within the line of another time: with the date only if the days differ.
func (p *logPrinter) timeOn(line, t time.Time) string {
	if line.In(p.zone).Format(time.DateOnly) == t.In(p.zone).Format(time.DateOnly) {
		return t.In(p.zone).Format(shortForm)
	}
	return p.stamp(t)
}

// newDay returns a line with the day, if the previous line was of another day.
func (p *logPrinter) newDay(t time.Time) string {
	day := t.In(p.zone).Format(dayForm)
	if p.screen == nil || day == p.day {
		return ""
	}
	p.day = day
	if p.objects && p.screen.namespace != "" {
		day += ", namespace " + p.screen.namespace
	}
	return "-- " + day + "\n"
}

func (p *logPrinter) json(value any) error { return output.WriteJSON(p.out, value, false) }

// Column widths of a log, whose later lines are not known yet. They suffice for most cells; longer cells push the rest to
// the right.
const (
	typeWidth   = len(delta.Updated)
	whoWidth    = 24
	objectWidth = 36
)

func (p *logPrinter) entry(e *entries.Entry) error {
	if p.format == output.JSON {
		return p.json(e)
	}
	switch {
	case p.screen == nil:
		return p.line(e)
	case !p.merges() || e.Diff != "":
		return errors.Join(p.flush(), p.group(&group{all: []*entries.Entry{e}}))
	}
	for _, g := range p.groups.add(e, p.key(e)) {
		if err := p.group(g); err != nil {
			return err
		}
	}
	return nil
}

// merges reports whether one line shows equal deltas of siblings.
func (p *logPrinter) merges() bool { return p.merge && p.objects }

// line prints a delta as one line, for grep and similar tools.
func (p *logPrinter) line(e *entries.Entry) error {
	text := p.coloured(p.head(e), e.Type) + "  " + p.style.Change(strings.Join(p.lines(e), "; "))
	_, err := io.WriteString(p.out, strings.TrimRight(text, " ")+"\n"+p.difference(e))
	return err
}

func (p *logPrinter) head(e *entries.Entry) string {
	head := fmt.Sprintf("%1s%s  %-*s  ", output.Mark(e.Estimated, e.Contradictory), p.time(e.OccurredAt), typeWidth, e.Type)
	if p.objects {
		head += fmt.Sprintf("%-*s  ", objectWidth, e.Kind+" "+output.ObjectName(e.Namespace, e.Name))
	}
	if p.format == output.Wide {
		head += fmt.Sprintf("seq:%-8d rv:%-8s %-8s ", e.Seq, e.ResourceVersion, e.Source)
	}
	return render.Line(head + fmt.Sprintf("%-*s", whoWidth, by(e)))
}

// by returns the proved writer. If a removed field has only a former owner, it returns that owner with a question mark.
func by(e *entries.Entry) string {
	switch {
	case e.Manager != "":
		return words.Writer(e.Manager, e.Subresource)
	case e.ManagerHint != "":
		return e.ManagerHint + "?"
	}
	return "-"
}

// coloured returns the head of a line with its type in colour.
func (p *logPrinter) coloured(head string, kind delta.Type) string {
	paint := map[delta.Type]func(string) string{delta.Added: p.style.Added, delta.Deleted: p.style.Removed}[kind]
	if paint == nil {
		return head
	}
	return strings.Replace(head, string(kind), paint(string(kind)), 1)
}

// wrap breaks a text so that it fits into the terminal. It indents the lines after the first.
func (p *logPrinter) wrap(text string, hanging int) string {
	if p.screen == nil {
		return text
	}
	return terminal.Wrap(text, p.screen.width, hanging)
}

// lines returns the texts about the delta.
func (p *logPrinter) lines(e *entries.Entry) []string {
	var lines []string
	if e.About != "" {
		lines = append(lines, e.About)
	}
	if last := e.LastManager; last != nil {
		writer := render.Line(words.Writer(last.Manager, last.Subresource))
		if p.merges() { // The last writes of siblings have different times.
			lines[0] += "; last writer " + writer
		} else {
			lines[0] += fmt.Sprintf("; last proved writer %s at %s%s", writer, output.Mark(last.Estimated, last.Contradictory), p.timeOn(e.OccurredAt, last.OccurredAt))
		}
	}
	if e.Diff != "" {
		return lines
	}
	for _, c := range e.Shown {
		if len(c.Path) > 0 { // The object was added or removed: e.About says so.
			lines = append(lines, p.words.Of(c))
		}
	}
	if e.Counted > 0 {
		more := "… and " + output.Counted(e.Counted, "change") + " of the status"
		if n := len(lines); n > 0 && (p.screen == nil || p.screen.fits(output.Indent+lines[n-1]+" "+more)) {
			lines[n-1] += " " + more
		} else {
			lines = append(lines, more)
		}
	}
	return lines
}

func (p *logPrinter) remark(r entries.Remark) error {
	if p.format == output.JSON {
		return p.json(map[string]entries.Remark{"note": r})
	}
	if err := p.flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(p.out, p.style.Note(p.wrap("-- "+render.Line(r.Text), len("-- "))))
	return err
}

// folded prints how many deltas were only counted.
func (p *logPrinter) folded(more string) error {
	if err := p.flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(p.out, p.style.Dim(p.wrap("-- "+render.Line(more), len("-- "))))
	return err
}

// title prints a title before the deltas of one life. In JSON, each line names its object.
func (p *logPrinter) title(text string) error {
	if p.format == output.JSON {
		return nil
	}
	if err := p.flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(p.out, text)
	return err
}
