package terminal

import (
	"io"
	"regexp"
	"strings"

	"github.com/rivo/uniseg"
	"golang.org/x/term"
)

// Width returns the columns of the terminal that w writes to; 0 if w is not a terminal.
func Width(w io.Writer) int {
	f, ok := w.(interface{ Fd() uintptr })
	if !ok {
		return 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return width
}

// escape matches a sequence that colours text. It has no width.
var escape = regexp.MustCompile(`\x1b\[[0-9;]*m`)

// Columns returns the width of a line in columns.
func Columns(line string) int { return uniseg.StringWidth(escape.ReplaceAllString(line, "")) }

// Wrap breaks lines that are wider than the terminal at spaces, and indents the continuation. It breaks a word only if the
// word is longer than a line. With width 0, it breaks nothing.
func Wrap(text string, width, hanging int) string {
	if width <= 0 {
		return text
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if Columns(line) > width {
			w := wrapping{width: width, indent: min(max(hanging, 0), max(width/2, width-leastRoom))}
			lines[i] = w.line(line)
		}
	}
	return strings.Join(lines, "\n")
}

// leastRoom is the minimum width of an indented line, on a terminal that is at least twice as wide.
const leastRoom = 24

// wrapping breaks one line.
type wrapping struct {
	width, indent int

	out    strings.Builder
	column int
	colour string // the current colour sequence
}

var pieces = regexp.MustCompile(` +|[^ ]+`)

func (w *wrapping) line(line string) string {
	spaces := ""
	for _, piece := range pieces.FindAllString(line, -1) {
		if piece[0] == ' ' {
			spaces = piece
			continue
		}
		columns := Columns(piece)
		switch {
		case w.column+len(spaces)+columns <= w.width:
			w.put(spaces, len(spaces))
			w.put(piece, columns)
		case columns <= w.width-w.indent:
			w.feed()
			w.put(piece, columns)
		default:
			w.long(spaces, piece)
		}
		spaces = ""
	}
	return w.out.String()
}

func (w *wrapping) put(text string, columns int) {
	for _, sequence := range escape.FindAllString(text, -1) {
		w.colour = sequence
		if sequence == reset {
			w.colour = ""
		}
	}
	w.out.WriteString(text)
	w.column += columns
}

// feed begins the next line. It ends the colour before the line end, and starts it again after.
func (w *wrapping) feed() {
	if w.colour != "" {
		w.out.WriteString(reset)
	}
	w.out.WriteString("\n" + strings.Repeat(" ", w.indent) + w.colour)
	w.column = w.indent
}

// long writes a word that is longer than a line.
func (w *wrapping) long(spaces, word string) {
	switch {
	case w.column+len(spaces) >= w.width-1:
		w.feed()
	default:
		w.put(spaces, len(spaces))
	}
	for word != "" {
		if at := escape.FindStringIndex(word); at != nil && at[0] == 0 {
			w.put(word[:at[1]], 0)
			word = word[at[1]:]
			continue
		}
		cluster, rest, columns, _ := uniseg.FirstGraphemeClusterInString(word, -1)
		if w.column+columns > w.width {
			w.feed()
		}
		w.put(cluster, columns)
		word = rest
	}
}
