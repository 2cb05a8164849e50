package render

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// JSON escapes what steers a terminal in a JSON text: \uXXXX stands for it. Outside of strings, JSON holds no such character.
func JSON(text []byte) []byte {
	if !bytes.ContainsFunc(text, steers) {
		return text
	}
	escaped := make([]byte, 0, len(text)+64)
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		switch {
		case !steers(r):
			escaped = append(escaped, text[:size]...)
		case r > 0xFFFF:
			high, low := utf16.EncodeRune(r)
			escaped = fmt.Appendf(escaped, `\u%04x\u%04x`, high, low)
		default:
			escaped = fmt.Appendf(escaped, `\u%04x`, r)
		}
		text = text[size:]
	}
	return escaped
}

// steers is true for the controls that JSON lets stand in a string, for format characters such as bidirectional controls, and for separators of lines.
func steers(r rune) bool {
	return r >= 0x7F && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}

// Line keeps a text on one line and from steering a terminal: \uXXXX stands for what cannot be printed.
func Line(text string) string {
	return escapeUnless(text, unicode.IsPrint)
}

// Cell is Line for the cell of a table that kubectl prints. kubectl itself treats escape characters and line ends, and does so after it has measured the cell.
func Cell(text string) string {
	return escapeUnless(text, func(r rune) bool { return unicode.IsPrint(r) || strings.ContainsRune("\f\n\r\t\x1b", r) })
}

// Terminal keeps a text of many lines from steering a terminal.
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
