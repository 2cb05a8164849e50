package changelog

import (
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/internal/render"
	"github.com/kuberewind/kuberewind/internal/replay/entries"
	"github.com/kuberewind/kuberewind/internal/replay/output"
	"github.com/kuberewind/kuberewind/internal/terminal"
)

// screen is the form of the log on a terminal. The text of new and deleted objects says so, so types have no column.
type screen struct {
	width     int                         // columns of the terminal; 0 if not known
	namespace string                      // lines omit it, because all objects are in it; "" for several namespaces
	brief     map[schema.GroupKind]string // short names of types
}

// Column widths on a terminal. If a line does not fit with them, it has no padding.
const (
	screenObject = 27
	screenWho    = 23
)

// group prints one or several deltas as one line. It breaks the line only if the terminal is narrower.
func (p *logPrinter) group(g *group) error {
	e := g.first()
	lines := p.lines(e)
	if len(lines) == 0 {
		lines = []string{""}
	}
	if e.Type == delta.Sync {
		lines[0] = "Sync: " + lines[0]
	}
	text := p.newDay(e.OccurredAt) + p.wrap(strings.TrimRight(p.columns(g, lines[0])+p.painted(e.Type, lines[0]), " "), 2*len(output.Indent)) + "\n"
	for _, more := range lines[1:] {
		text += p.wrap(output.Indent+p.style.Change(more), 2*len(output.Indent)) + "\n"
	}
	_, err := io.WriteString(p.out, text+p.difference(e))
	return err
}

// columns returns the columns before the words. If the words fit only on a line of their own, they start on the next line.
func (p *logPrinter) columns(g *group, words string) string {
	padded, plain := p.padded(g, screenObject, screenWho), p.padded(g, 0, 0)
	switch {
	case p.screen.fits(padded + words):
		return padded
	case !p.screen.fits(plain+words) && p.screen.fits(output.Indent+words):
		return strings.TrimRight(plain, " ") + "\n" + output.Indent
	}
	return plain
}

func (p *logPrinter) padded(g *group, object, who int) string {
	e := g.first()
	line := fmt.Sprintf("%1s%s  ", output.Mark(e.Estimated, e.Contradictory), p.time(e.OccurredAt))
	if p.objects {
		line += fmt.Sprintf("%-*s  ", object, p.screen.object(g))
	}
	return render.Line(line + fmt.Sprintf("%-*s  ", who, by(e)))
}

// object names the changed object in the form of command arguments.
func (s *screen) object(g *group) string {
	e := g.first()
	name := s.kind(e.Group, e.Kind) + "/" + e.Name
	if len(g.all) > 1 {
		name = s.kind(e.Owner.Group, e.Owner.Kind) + "/" + e.Owner.Name
	}
	if e.Namespace != "" && e.Namespace != s.namespace {
		name = e.Namespace + " " + name
	}
	if len(g.all) > 1 {
		name = fmt.Sprintf("%d %s of %s", len(g.all), e.Resource, name)
	}
	return name
}

func (s *screen) kind(group, kind string) string {
	if word := s.brief[schema.GroupKind{Group: group, Kind: kind}]; word != "" {
		return word
	}
	return strings.ToLower(kind)
}

// fits reports whether a line fits on the terminal without a break.
func (s *screen) fits(line string) bool { return s.width == 0 || terminal.Columns(line) <= s.width }

// painted colours the words of a delta by its type. If the type has no colour, it uses the sign of the words.
func (p *logPrinter) painted(kind delta.Type, words string) string {
	switch kind {
	case delta.Added:
		return p.style.Added(words)
	case delta.Deleted:
		return p.style.Removed(words)
	default:
		return p.style.Change(words)
	}
}

// difference returns the diff of YAML, if --diff is set.
func (p *logPrinter) difference(e *entries.Entry) (text string) {
	for line := range strings.Lines(e.Diff) {
		line = render.Line(strings.TrimRight(strings.ReplaceAll(line, "\t", "  "), "\n"))
		text += output.Indent + p.style.Change(line) + "\n"
	}
	return text
}
