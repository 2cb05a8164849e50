package render

import (
	"fmt"
	"strings"
	"unicode"
)

// Line returns a text on one line that does not control a terminal: it writes characters that cannot be printed as \uXXXX.
func Line(text string) string {
	return escapeUnless(text, unicode.IsPrint)
}

// Cell is Line for the cell of a table that kubectl prints. kubectl itself escapes line ends and escape characters, after it
// has measured the cell.
func Cell(text string) string {
	return escapeUnless(text, func(r rune) bool { return unicode.IsPrint(r) || strings.ContainsRune("\f\n\r\t\x1b", r) })
}

// Terminal is Line for a text of many lines.
func Terminal(text string) string {
	return escapeUnless(text, func(r rune) bool { return unicode.IsPrint(r) || r == '\n' || r == '\t' })
}

func escapeUnless(text string, harmless func(rune) bool) string {
	if !strings.ContainsFunc(text, func(r rune) bool { return !harmless(r) }) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if harmless(r) {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// longest is the limit in bytes for a line of a message or a value of the log.
const longest = 4096

// Short cuts the middle of long lines. A message may quote a long text of a user or a server.
func Short(text string) string {
	if len(text) <= longest {
		return text
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if len(line) > longest {
			head, tail := line[:longest/2], line[len(line)-longest/4:]
			lines[i] = strings.ToValidUTF8(fmt.Sprintf("%s … %d bytes … %s", head, len(line)-len(head)-len(tail), tail), "")
		}
	}
	return strings.Join(lines, "\n")
}
