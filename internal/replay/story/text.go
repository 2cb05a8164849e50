package story

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/render"
	"github.com/kuberewind/kuberewind/internal/replay/entries"
	"github.com/kuberewind/kuberewind/internal/replay/output"
	"github.com/kuberewind/kuberewind/internal/replay/words"
	"github.com/kuberewind/kuberewind/internal/terminal"
	"github.com/kuberewind/kuberewind/story"
)

// stamps formats times for people.
type stamps struct {
	zone *time.Location
	day  string // day of the previous line
}

// The forms of times for people, and of the line with the day.
const (
	shortForm = "15:04:05.000"
	dayForm   = "Mon 2006-01-02 -07:00"
)

func (s *stamps) full(t time.Time) string { return t.In(s.zone).Format(output.StampForm) }

// short returns a time of day, with its mark.
func (s *stamps) short(span history.Span, estimated bool) string {
	return fmt.Sprintf("%1s%s", output.Mark(estimated, span.Contradictory), span.Estimate.In(s.zone).Format(shortForm))
}

func (s *stamps) moment(m *story.Moment) string { return s.short(m.Span, estimated(m)) }

func estimated(m *story.Moment) bool { return !m.ObservedAt.Equal(m.OccurredAt) }

// textPrinter writes a story for people.
type textPrinter struct {
	out   io.Writer
	width int // columns of the terminal; 0 without a terminal
	words words.Wording
	style terminal.Style
	stamps
	titles int
}

func (p *textPrinter) title(root *story.Object) error {
	p.titles++
	text := render.Line(fmt.Sprintf("%s %s  uid %s", root.Stream.Kind, output.ObjectName(root.Namespace, root.Name), root.UID))
	if p.titles > 1 {
		text = "\n" + text
	}
	_, err := fmt.Fprintln(p.out, text)
	return err
}

// lineWidth is the width of the time before a text.
const lineWidth = len(" " + shortForm + "  ")

func (p *textPrinter) entry(e *story.Entry, shown *entries.Entry) error {
	depth := e.Object.Depth * len("  ")
	head := e.Object.Stream.Kind + " " + e.Object.Name + "  "
	lines := p.lines(e, shown)
	paint := p.paint(e)
	first := p.short(e.Span, shown.Estimated) + "  " + strings.Repeat(" ", depth) + render.Line(head) + paint(render.Line(lines[0]))
	hang := lineWidth + depth + len(output.Indent)
	text := p.newDay(e.Span.Estimate) + terminal.Wrap(first, p.width, hang) + "\n"
	for _, line := range lines[1:] {
		text += terminal.Wrap(strings.Repeat(" ", hang)+paint(render.Line(line)), p.width, hang+len("  ")) + "\n"
	}
	_, err := io.WriteString(p.out, text)
	return err
}

// paint returns the colour of an entry: added, deleted, changed, or a warning.
func (p *textPrinter) paint(e *story.Entry) func(string) string {
	switch {
	case e.Event != nil && e.Event.Type == "Warning":
		return p.style.Changed
	case e.Event != nil:
		return func(line string) string { return line }
	case e.Type == delta.Added:
		return p.style.Added
	case e.Type == delta.Deleted:
		return p.style.Removed
	}
	return p.style.Change
}

// newDay returns a line with the day, if the previous line was of another day.
func (p *textPrinter) newDay(t time.Time) string {
	day := t.In(p.zone).Format(dayForm)
	if day == p.day {
		return ""
	}
	p.day = day
	return "-- " + day + "\n"
}

// lines returns the texts about an entry, at least one.
func (p *textPrinter) lines(e *story.Entry, shown *entries.Entry) []string {
	if e.Event != nil {
		return []string{eventText(e)}
	}
	var lines []string
	if shown.About != "" {
		lines = append(lines, shown.About)
	}
	for _, c := range shown.Shown {
		if len(c.Path) > 0 { // The object was added or removed: About says so.
			lines = append(lines, p.words.Of(c))
		}
	}
	if shown.Counted > 0 {
		lines = append(lines, "… and "+output.Counted(shown.Counted, "change")+" of the status")
	}
	if len(lines) == 0 {
		lines = []string{"changed"}
	}
	if e.Manager != "" {
		lines[0] += "  [" + words.Writer(e.Manager, e.Subresource) + "]"
	}
	return lines
}

func eventText(e *story.Entry) string {
	text := fmt.Sprintf("%s %s: %s", e.Event.Type, e.Event.Reason, strings.TrimSpace(e.Event.Message))
	if e.Event.Count != "" && e.Event.Count != "1" {
		text += " (×" + e.Event.Count + ")"
	}
	if e.Event.Component != "" {
		text += "  [" + e.Event.Component + "]"
	}
	return text
}

func (p *textPrinter) remark(r entries.Remark) error {
	_, err := fmt.Fprintln(p.out, p.style.Note(terminal.Wrap("-- "+render.Line(r.Text), p.width, len("-- "))))
	return err
}
