package patch

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"
)

// The limits of PostgreSQL's json and jsonb, each measured on a server.
const (
	sqlMaxWhole    = 131_072 // digits of a numeric before the point
	sqlMaxFraction = 16_383  // digits after it
	sqlMaxDepth    = 1000    // the parser recurses on a stack of max_stack_depth; the default takes ten times as many levels
	// sqlMaxText bounds a text by two limits of PostgreSQL. A part of a jsonb value has at most 2^28 bytes, and the
	// binary form takes up to six times the space of the text. The parser may allocate a gibibyte at once.
	sqlMaxText = 32 << 20
)

// replacement is U+FFFD, which stands for a character that PostgreSQL cannot hold.
const replacement = "\uFFFD"

// SafeForSQL returns a JSON text, a Doc or a patch, without anything that PostgreSQL's json or jsonb rejects. U+FFFD
// replaces \u0000, lone surrogates and bytes that are not UTF-8. A string with an explanation replaces numbers beyond
// numeric, values nested deeper than 1000 levels, and a text longer than 32 MiB. If nothing had to be replaced, changed
// is false and safe is text itself.
func SafeForSQL(text []byte) (safe []byte, changed bool) {
	if len(text) > sqlMaxText {
		return fmt.Appendf(nil, `"kuberewind: a value of %d bytes is more than jsonb can hold"`, len(text)), true
	}
	if !utf8.Valid(text) {
		text, changed = bytes.ToValidUTF8(text, []byte(replacement)), true
	}
	s := sanitizer{text: text}
	s.run()
	if s.out == nil {
		return text, changed
	}
	return append(s.out, text[s.copied:]...), true
}

type sanitizer struct {
	text   []byte
	depth  int
	out    []byte // nil until something is replaced
	copied int    // how much of text is in out
}

func (s *sanitizer) run() {
	for i := 0; i < len(s.text); {
		switch c := s.text[i]; {
		case c == '"':
			i = s.str(i)
		case c == '{' || c == '[':
			i = s.open(i)
		case c == '}' || c == ']':
			s.depth--
			i++
		case c == '-' || isDigit(c):
			i = s.number(i)
		default:
			i++
		}
	}
}

// replace puts other in place of text[start:end].
func (s *sanitizer) replace(start, end int, other string) {
	if s.out == nil {
		s.out = make([]byte, 0, len(s.text)+len(other))
	}
	s.out = append(append(s.out, s.text[s.copied:start]...), other...)
	s.copied = end
}

func (s *sanitizer) open(i int) int {
	if s.depth++; s.depth <= sqlMaxDepth {
		return i + 1
	}
	end := skipValue(s.text, i)
	if end < 0 {
		end = len(s.text)
	}
	s.replace(i, end, `"kuberewind: nested deeper than `+strconv.Itoa(sqlMaxDepth)+` levels"`)
	s.depth--
	return end
}

func (s *sanitizer) number(i int) int {
	end := i + 1
	for end < len(s.text) && isNumberByte(s.text[end]) {
		end++
	}
	if number := s.text[i:end]; !fitsNumeric(number) {
		s.replace(i, end, `"kuberewind: number beyond PostgreSQL numeric: `+abridged(number)+`"`)
	}
	return end
}

func isNumberByte(c byte) bool {
	return isDigit(c) || c == '.' || c == 'e' || c == 'E' || c == '+' || c == '-'
}

// abridged returns a number, or the beginning and end of a long one.
func abridged(number []byte) string {
	if len(number) <= 60 {
		return string(number)
	}
	return fmt.Sprintf("%s…%s (%d characters)", number[:30], number[len(number)-20:], len(number))
}

// fitsNumeric reports whether numeric accepts the number as it is spelt. Zeros count: numeric keeps those of the
// fraction.
func fitsNumeric(number []byte) bool {
	if len(number) <= sqlMaxFraction && bytes.IndexByte(number, 'E') < 0 && bytes.IndexByte(number, 'e') < 0 {
		return true
	}
	p, _, problem := splitNumber(number, 0)
	if problem != "" {
		return false
	}
	exponent := 0
	if p.end > p.fraction {
		var err error
		if exponent, err = strconv.Atoi(string(number[p.fraction+1:])); err != nil || exponent > math.MaxInt32/4 || exponent < -math.MaxInt32/4 {
			return false
		}
	}
	whole := len(bytes.TrimPrefix(number[:p.whole], []byte("-")))
	return whole+exponent <= sqlMaxWhole && max(p.fraction-p.whole-1, 0)-exponent <= sqlMaxFraction
}

// str makes the string at i safe, and returns the position after it.
func (s *sanitizer) str(i int) int {
	for i = plainEnd(s.text, i+1); i < len(s.text); i = plainEnd(s.text, i) {
		switch s.text[i] {
		case '"':
			return i + 1
		case '\\':
			i = s.escape(i)
		default:
			i++
		}
	}
	return i
}

// escape replaces the escape at i if PostgreSQL rejects it, and returns the position after it.
func (s *sanitizer) escape(i int) int {
	e, ok := scanEscape(s.text, i)
	if !ok {
		return i + 1
	}
	if e.char == 0 || isHigh(e.char) || isLow(e.char) {
		s.replace(i, e.end, replacement)
	}
	return e.end
}
