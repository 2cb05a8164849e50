package blame

import (
	"bufio"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/kuberewind/kuberewind/blame"
	"github.com/kuberewind/kuberewind/internal/render"
	"github.com/kuberewind/kuberewind/internal/replay/output"
	"github.com/kuberewind/kuberewind/internal/replay/terminal"
	"github.com/kuberewind/kuberewind/internal/replay/words"
)

// The JSON form is public: documented in the help of blame.
type jsonLine struct {
	Text            string    `json:"text"`
	Pointer         string    `json:"pointer"`
	Seq             int64     `json:"seq"`
	ResourceVersion string    `json:"resourceVersion"`
	ObservedAt      time.Time `json:"observedAt"`
	OccurredAt      time.Time `json:"occurredAt"`
	Estimated       bool      `json:"estimated"`
	Type            string    `json:"type"`
	Source          string    `json:"source"`
	Manager         string    `json:"manager"`
	Subresource     string    `json:"subresource"`
	Earlier         bool      `json:"earlier"`
	Latest          bool      `json:"latest"`
}

func (c *command) print(lines []blame.Line) error {
	out := bufio.NewWriter(c.env.IOStreams.Out)
	if c.output == output.JSON {
		for _, l := range lines {
			o := l.Origin
			err := output.WriteJSON(out, jsonLine{
				Text: l.Text, Pointer: l.Pointer, Seq: o.Seq, ResourceVersion: o.RV, ObservedAt: o.ObservedAt, OccurredAt: o.OccurredAt,
				Estimated: estimated(o), Type: string(o.Type), Source: o.Source, Manager: o.Manager, Subresource: o.Subresource, Earlier: o.Earlier, Latest: o.Latest,
			}, false)
			if err != nil {
				return err
			}
		}
		return out.Flush()
	}
	c.text(out, lines)
	return out.Flush()
}

func estimated(o *blame.Origin) bool { return !o.ObservedAt.Equal(o.OccurredAt) }

// stampForm is without milliseconds: a line has little room.
const stampForm = "2006-01-02 15:04:05"

// leastWho is how much of the names of managers a terminal shows at least. A wider one shows a fifth of its width.
const leastWho = 16

func (c *command) text(out *bufio.Writer, lines []blame.Line) {
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
		head := c.head(l.Origin, seqWidth, room)
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

// head is what stands before a line.
func (c *command) head(o *blame.Origin, seqWidth, room int) string {
	mark, name := " ", []rune(who(o))
	if estimated(o) {
		mark = "~"
	}
	if len(name) > room {
		name = append(name[:room-1], '…')
	}
	return fmt.Sprintf("%*d %s%s  %-*s  ", seqWidth, o.Seq, mark, o.OccurredAt.In(c.env.Zone()).Format(stampForm), room, string(name))
}

// who is what is known of the writer.
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
