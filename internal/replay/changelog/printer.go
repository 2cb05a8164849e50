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
	objects bool    // name the object on each line
	screen  *screen // nil if no terminal shows it
	merge   bool    // that a person wants siblings that say the same on one line
	groups  groups
	day     string // that a line of its own said last; times on a screen have no date
}

func (p *logPrinter) stamp(t time.Time) string { return t.In(p.zone).Format(output.StampForm) }

// Forms of times for people, and of the line that says which day they are of.
const (
	shortForm = "15:04:05.000"
	dayForm   = "Mon 2006-01-02 -07:00"
)

// time is the time of a delta as its line has it.
func (p *logPrinter) time(t time.Time) string {
	if p.screen != nil {
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

// Widths of the columns of a log whose lines are not known yet. They are enough for most; longer cells push the rest.
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

// merges reports whether siblings that say the same are one line.
func (p *logPrinter) merges() bool { return p.merge && p.objects }

// line prints a delta as one line, for grep and its like.
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
func (p *logPrinter) coloured(head string, kind delta.Type) string {
	paint := map[delta.Type]func(string) string{delta.Added: p.style.Added, delta.Deleted: p.style.Removed}[kind]
	if paint == nil {
		return head
	}
	return strings.Replace(head, string(kind), paint(string(kind)), 1)
}

// wrap breaks a text so that it fits into the terminal. The lines after the first hang.
func (p *logPrinter) wrap(text string, hanging int) string {
	if p.screen == nil {
		return text
	}
	return terminal.Wrap(text, p.screen.width, hanging)
}

// lines are what is said of the delta.
func (p *logPrinter) lines(e *entries.Entry) []string {
	var lines []string
	if e.About != "" {
		lines = append(lines, e.About)
	}
	if last := e.LastManager; last != nil {
		writer := render.Line(words.Writer(last.Manager, last.Subresource))
		if p.merges() { // Siblings were last written at different times.
			lines[0] += "; last writer " + writer
		} else {
			lines[0] += fmt.Sprintf("; last proved writer %s at %s%s", writer, output.Mark(last.Estimated, last.Contradictory), p.timeOn(e.OccurredAt, last.OccurredAt))
		}
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

// folded says what was only counted.
func (p *logPrinter) folded(more string) error {
	if err := p.flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(p.out, p.style.Dim(p.wrap("-- "+render.Line(more), len("-- "))))
	return err
}

// title stands over the deltas of one life. In JSON each line says whose it is.
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
