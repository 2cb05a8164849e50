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
	"github.com/kuberewind/kuberewind/internal/replay/terminal"
)

// screen is the form of the log on a terminal. New and ended objects say so in their own words, so types have no column.
type screen struct {
	width     int                         // columns of the terminal; 0 if it does not tell
	namespace string                      // not named: all objects are of it; "" if they are of several
	brief     map[schema.GroupKind]string // what types are called
}

// Widths of the columns on a screen. A line that is too long with them has none.
const (
	screenObject = 27
	screenWho    = 23
)

// group prints one or several deltas as one line. It breaks only if the terminal is narrower.
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

// columns are what stands before the words. Words that fit on the next line only are left whole.
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

// object names what changed as arguments of commands do.
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

// fits reports whether a line can stand on the terminal as it is.
func (s *screen) fits(line string) bool { return s.width == 0 || terminal.Columns(line) <= s.width }

// painted colours the words of a delta by its type, else by their sign.
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

// difference is that of YAML, if it was asked for.
func (p *logPrinter) difference(e *entries.Entry) (text string) {
	for line := range strings.Lines(e.Diff) {
		line = render.Line(strings.TrimRight(strings.ReplaceAll(line, "\t", "  "), "\n"))
		text += output.Indent + p.style.Change(line) + "\n"
	}
	return text
}
