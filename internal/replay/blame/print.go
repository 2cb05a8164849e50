package blame

import (
	"bufio"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/kuberewind/kuberewind/blame"
	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/render"
	"github.com/kuberewind/kuberewind/internal/replay/output"
	"github.com/kuberewind/kuberewind/internal/replay/words"
	"github.com/kuberewind/kuberewind/internal/terminal"
)

// The JSON form is public: the help of blame documents it.
type jsonLine struct {
	Text            string       `json:"text"`
	Pointer         string       `json:"pointer"`
	Seq             int64        `json:"seq"`
	ResourceVersion string       `json:"resourceVersion"`
	ObservedAt      time.Time    `json:"observedAt"`
	OccurredAt      time.Time    `json:"occurredAt"`
	Estimated       bool         `json:"estimated"`
	NotBefore       time.Time    `json:"notBefore,omitzero"` // of an estimate
	NotAfter        time.Time    `json:"notAfter,omitzero"`
	Contradictory   bool         `json:"contradictory,omitempty"` // clocks of servers contradict the order
	Type            delta.Type   `json:"type"`
	Source          delta.Source `json:"source"`
	Manager         string       `json:"manager"`
	Subresource     string       `json:"subresource"`
	Earlier         bool         `json:"earlier"`
	Latest          bool         `json:"latest"`
}

// spans holds the time range of each version that set a line.
type spans map[*blame.Origin]history.Span

func (c *command) print(lines []blame.Line, happened spans) error {
	out := bufio.NewWriter(c.env.IOStreams.Out)
	if c.output == output.JSON {
		for _, l := range lines {
			if err := output.WriteJSON(out, jsonOf(l, happened[l.Origin]), false); err != nil {
				return err
			}
		}
		return out.Flush()
	}
	c.text(out, lines, happened)
	return out.Flush()
}

func jsonOf(l blame.Line, span history.Span) jsonLine {
	o := l.Origin
	line := jsonLine{
		Text: l.Text, Pointer: l.Pointer, Seq: o.Seq, ResourceVersion: o.RV, ObservedAt: o.ObservedAt, OccurredAt: span.Estimate, Estimated: estimated(o),
		Contradictory: span.Contradictory, Type: o.Type, Source: o.Source, Manager: o.Manager, Subresource: o.Subresource, Earlier: o.Earlier, Latest: o.Latest,
	}
	if line.Estimated {
		line.NotBefore, line.NotAfter = span.NotBefore, span.NotAfter
	}
	return line
}

func estimated(o *blame.Origin) bool { return !o.ObservedAt.Equal(o.OccurredAt) }

// stampForm has no milliseconds, because a line has little room.
const stampForm = "2006-01-02 15:04:05"

// leastWho is the minimum width of managers' names on a terminal. On a wider terminal, a name may take a fifth of the width.
const leastWho = 16

func (c *command) text(out *bufio.Writer, lines []blame.Line, happened spans) {
	width, seqWidth, room := c.env.Width(), 0, 0
	for _, l := range lines {
		seqWidth = max(seqWidth, len(strconv.FormatInt(l.Origin.Seq, 10)))
		room = max(room, utf8.RuneCountInString(who(l.Origin)))
	}
	if width > 0 {
		room = min(room, max(leastWho, width/5))
	}
	var before *blame.Origin
	for _, l := range lines {
		head := c.head(l.Origin, happened[l.Origin], seqWidth, room)
		hang := utf8.RuneCountInString(head)
		if c.env.Terminal() && l.Origin == before {
			head = strings.Repeat(" ", hang)
		}
		before = l.Origin
		indent := len(l.Text) - len(strings.TrimLeft(l.Text, " "))
		line := strings.TrimRight(head+strings.Repeat(" ", indent)+render.Line(strings.TrimLeft(l.Text, " ")), " ")
		fmt.Fprintln(out, terminal.Wrap(line, width, hang+indent+len("  ")))
	}
}

// head returns the columns before a line.
func (c *command) head(o *blame.Origin, span history.Span, seqWidth, room int) string {
	name := []rune(who(o))
	if len(name) > room {
		name = append(name[:room-1], '…')
	}
	mark := output.Mark(estimated(o), span.Contradictory)
	return fmt.Sprintf("%*d %1s%s  %-*s  ", seqWidth, o.Seq, mark, span.Estimate.In(c.env.Zone()).Format(stampForm), room, string(name))
}

// who returns the name of the writer, or why it is not known.
func who(o *blame.Origin) string {
	switch {
	case o.Earlier:
		return "before the record"
	case o.Latest:
		return "in a gap"
	case o.Manager == "":
		return "-"
	}
	return render.Line(words.Writer(o.Manager, o.Subresource))
}
