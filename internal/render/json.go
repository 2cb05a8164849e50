package render

import (
	"bytes"
	"fmt"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// JSON escapes characters in a JSON text that control a terminal, as \uXXXX. Outside of strings, JSON holds no such
// characters.
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

// steers reports whether a character controls a terminal: controls that JSON allows in a string, format characters such as
// bidirectional controls, and line separators.
func steers(r rune) bool {
	return r >= 0x7F && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}
