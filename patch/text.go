package patch

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

const hexDigits = "0123456789abcdef"

// plainEnd returns the index of the first quote, backslash or control character at or after i, or the end of the text.
func plainEnd(text []byte, i int) int {
	for ; i+8 <= len(text); i += 8 {
		if m := special(binary.LittleEndian.Uint64(text[i:])); m != 0 {
			return i + bits.TrailingZeros64(m)>>3
		}
	}
	for i < len(text) && text[i] >= ' ' && text[i] != '"' && text[i] != '\\' {
		i++
	}
	return i
}

// special marks the high bit of each byte of x that is a quote, a backslash or a control character. A borrow can mark
// bytes above such a byte wrongly, but never the lowest one.
func special(x uint64) uint64 {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	quote, slash := x^(ones*'"'), x^(ones*'\\')
	return ((x-ones*' ')&^x | (quote-ones)&^quote | (slash-ones)&^slash) & highs
}

// scanString reads the string whose opening quote is at pos. It returns the position after the closing quote, and
// whether the spelling is canonical; or the position and description of a problem.
func scanString(text []byte, pos int) (end int, f flags, problem string) {
	for i := pos + 1; ; {
		i = plainEnd(text, i)
		switch {
		case i == len(text):
			return i, f, "the string does not end"
		case text[i] == '"':
			return i + 1, f, ""
		case text[i] != '\\':
			return i, f, "control character in a string"
		}
		e, ok := scanEscape(text, i)
		if !ok {
			return i, f, "invalid escape in a string"
		}
		if !e.canonical {
			f = dirty
		}
		i = e.end
	}
}

// An escape is an escape sequence of a string: a backslash and what belongs to it.
type escape struct {
	char      rune // the character that is meant, or a lone surrogate
	end       int
	canonical bool
}

// scanEscape reads the escape whose backslash is at i. A surrogate pair is one escape.
func scanEscape(text []byte, i int) (escape, bool) {
	if i+1 >= len(text) {
		return escape{}, false
	}
	switch c := text[i+1]; c {
	case '"', '\\':
		return escape{rune(c), i + 2, true}, true
	case '/':
		return escape{'/', i + 2, false}, true
	case 'b', 'f', 'n', 'r', 't':
		return escape{control(c), i + 2, true}, true
	case 'u':
		return scanHexEscape(text, i)
	}
	return escape{}, false
}

func control(letter byte) rune {
	switch letter {
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	default:
		return '\t'
	}
}

func scanHexEscape(text []byte, i int) (escape, bool) {
	high, lower, ok := hex4(text, i+2)
	if !ok {
		return escape{}, false
	}
	if isHigh(high) && i+7 < len(text) && text[i+6] == '\\' && text[i+7] == 'u' {
		if low, _, ok := hex4(text, i+8); ok && isLow(low) {
			return escape{char: (high-0xd800)<<10 + (low - 0xdc00) + 0x10000, end: i + 12}, true
		}
	}
	return escape{high, i + 6, lower && staysHex(high)}, true
}

// staysHex reports whether \u is the canonical spelling of a character. That is so for controls without a letter, and
// for lone surrogates, which UTF-8 cannot spell.
func staysHex(c rune) bool {
	return c < ' ' && shortEscape(c) == 0 || isHigh(c) || isLow(c)
}

func isHigh(c rune) bool { return c >= 0xd800 && c < 0xdc00 }
func isLow(c rune) bool  { return c >= 0xdc00 && c < 0xe000 }

// hex4 reads four hexadecimal digits; lower reports whether none of them is upper case.
func hex4(text []byte, i int) (value rune, lower, ok bool) {
	if i+4 > len(text) {
		return 0, false, false
	}
	lower = true
	for _, c := range text[i : i+4] {
		switch {
		case isDigit(c):
			value = value<<4 | rune(c-'0')
		case c >= 'a' && c <= 'f':
			value = value<<4 | rune(c-'a'+10)
		case c >= 'A' && c <= 'F':
			value, lower = value<<4|rune(c-'A'+10), false
		default:
			return 0, false, false
		}
	}
	return value, lower, true
}

// shortEscape returns the letter that stands for c after a backslash, or 0.
func shortEscape(c rune) byte {
	switch c {
	case '"', '\\':
		return byte(c)
	case '\b':
		return 'b'
	case '\f':
		return 'f'
	case '\n':
		return 'n'
	case '\r':
		return 'r'
	case '\t':
		return 't'
	}
	return 0
}

// appendText appends the canonical spelling of the text between the quotes of a valid string.
func appendText(dst, text []byte) []byte {
	for i := 0; i < len(text); {
		plain := plainEnd(text, i)
		dst = append(dst, text[i:plain]...)
		if plain == len(text) {
			break
		}
		e, _ := scanEscape(text, plain)
		dst = appendChar(dst, e.char)
		i = e.end
	}
	return dst
}

// appendChar appends the canonical spelling of one character that was escaped.
func appendChar(dst []byte, c rune) []byte {
	if letter := shortEscape(c); letter != 0 {
		return append(dst, '\\', letter)
	}
	if staysHex(c) {
		return append(dst, '\\', 'u', hexDigits[c>>12], hexDigits[c>>8&15], hexDigits[c>>4&15], hexDigits[c&15])
	}
	return utf8.AppendRune(dst, c)
}

// appendDecoded appends the characters that a string's text means. A lone surrogate, which has no UTF-8 form, becomes
// the three bytes that UTF-8's rule would produce.
func appendDecoded(dst, text []byte) []byte {
	for i := 0; i < len(text); {
		plain := plainEnd(text, i)
		dst = append(dst, text[i:plain]...)
		if plain == len(text) {
			break
		}
		e, ok := scanEscape(text, plain)
		if !ok {
			return append(dst, text[plain:]...)
		}
		if c := e.char; isHigh(c) || isLow(c) {
			dst = append(dst, 0xe0|byte(c>>12), 0x80|byte(c>>6)&0x3f, 0x80|byte(c)&0x3f)
		} else {
			dst = utf8.AppendRune(dst, c)
		}
		i = e.end
	}
	return dst
}
