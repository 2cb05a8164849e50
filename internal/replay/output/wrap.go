package output

import (
	"strings"
	"unicode/utf8"
)

// Wrap breaks a text at its blanks, so that its lines stay within a width. The first line begins at one column, the others at another. A word that is
// too long stays whole. A width of 0 breaks nothing.
func Wrap(text string, width, first, others int) string {
	if width == 0 {
		return text
	}
	var b strings.Builder
	column, blanks := first, -1 // of the first word, none stand before it
	for word := range strings.SplitSeq(text, " ") {
		n := utf8.RuneCountInString(word)
		switch blanks++; {
		case n == 0:
			continue
		case b.Len() > 0 && column+blanks+n > width:
			b.WriteString("\n" + strings.Repeat(" ", others))
			column = others
		default:
			b.WriteString(strings.Repeat(" ", blanks))
			column += blanks
		}
		b.WriteString(word)
		column, blanks = column+n, 0
	}
	return b.String()
}
