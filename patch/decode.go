package patch

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
)

var errNumber = errors.New("a number is too large for a float64")

// Decode returns the Go values of a JSON text, by the rules of k8s.io/apimachinery/pkg/util/json: nil, bool, string,
// int64, float64, []any and map[string]any. A number is an int64 if it has neither point nor exponent and fits;
// otherwise it is a float64. U+FFFD stands for each lone surrogate and each byte that is not UTF-8. If members share a
// key, the last one counts.
//
// Strings share one copy of the text. A caller that keeps only a few of them for long should clone them.
//
// The error names the byte at which the text is not JSON or is nested deeper than 10,000 levels, or says that a number
// is too large for a float64.
func Decode(doc Doc) (any, error) {
	d := decoders.Get().(*decoder)
	defer d.release()
	d.text, d.copied, d.valid, d.depth = doc, string(doc), utf8.Valid(doc), 0
	value, pos := d.value(d.skip(0))
	if pos >= 0 && d.skip(pos) == len(doc) {
		return value, nil
	}
	return nil, fmt.Errorf("patch: decode: %w", d.problem())
}

// problem returns why the text could not be decoded. If it is not JSON, a tape finds the place.
func (d *decoder) problem() error {
	t := tapes.Get().(*tape)
	defer t.release()
	if err := t.parse(d.text, maxDepth); err != nil {
		return err
	}
	return errNumber
}

// A decoder makes the Go values of a text in one pass, without a tape, and reads no byte twice. Its methods return the
// position after what they read, or -1.
type decoder struct {
	text   []byte
	copied string // the text, in memory of its own
	valid  bool   // the text is UTF-8
	depth  int    // of the container being read
	read   []pair // content of the containers being read, innermost last: maps and slices are made when their size is known
	most   int    // the largest used length of read
	spelt  []byte // the string with escapes that is being read
}

// A pair is a member of an object or, without a key, an element of an array.
type pair struct {
	key   string
	value any
}

// decoders keeps the memory of decoders between calls.
var decoders = sync.Pool{New: func() any { return new(decoder) }}

func (d *decoder) release() {
	clear(d.read[:max(d.most, len(d.read))])
	*d = decoder{read: d.read[:0], spelt: d.spelt[:0]}
	if cap(d.read) <= maxKept/2 && cap(d.spelt) <= maxKept {
		decoders.Put(d)
	}
}

// take returns what was read since base. The result is valid until more is read.
func (d *decoder) take(base int) []pair {
	taken := d.read[base:]
	d.most = max(d.most, len(d.read))
	d.read = d.read[:base]
	return taken
}

func (d *decoder) at(pos int) byte {
	if pos < len(d.text) {
		return d.text[pos]
	}
	return 0
}

func (d *decoder) skip(pos int) int {
	for isSpace(d.at(pos)) {
		pos++
	}
	return pos
}

func (d *decoder) value(pos int) (any, int) {
	switch c := d.at(pos); c {
	case '"':
		text, end := d.str(pos)
		return text, end
	case '{':
		return d.object(pos)
	case '[':
		return d.array(pos)
	case 't':
		return true, d.word(pos, "true")
	case 'f':
		return false, d.word(pos, "false")
	case 'n':
		return nil, d.word(pos, "null")
	default:
		if c == '-' || isDigit(c) {
			return d.number(pos)
		}
		return nil, -1
	}
}

func (d *decoder) word(pos int, word string) int {
	if !strings.HasPrefix(d.copied[pos:], word) {
		return -1
	}
	return pos + len(word)
}

func (d *decoder) object(pos int) (any, int) {
	if pos = d.skip(pos + 1); d.depth == maxDepth {
		return nil, -1
	}
	if d.at(pos) == '}' {
		return map[string]any{}, pos + 1
	}
	d.depth++
	for base := len(d.read); ; {
		var p pair
		if p, pos = d.member(pos); pos < 0 {
			return nil, -1
		}
		d.read = append(d.read, p)
		switch d.at(pos) {
		case ',':
			pos = d.skip(pos + 1)
		case '}':
			d.depth--
			return mapOf(d.take(base)), pos + 1
		default:
			return nil, -1
		}
	}
}

func (d *decoder) member(pos int) (p pair, _ int) {
	if d.at(pos) != '"' {
		return p, -1
	}
	if p.key, pos = d.str(pos); pos < 0 {
		return p, -1
	}
	if pos = d.skip(pos); d.at(pos) != ':' {
		return p, -1
	}
	if p.value, pos = d.value(d.skip(pos + 1)); pos < 0 {
		return p, -1
	}
	return p, d.skip(pos)
}

func mapOf(members []pair) map[string]any {
	object := make(map[string]any, len(members))
	for i := range members {
		object[members[i].key] = members[i].value
	}
	return object
}

func (d *decoder) array(pos int) (any, int) {
	if pos = d.skip(pos + 1); d.depth == maxDepth {
		return nil, -1
	}
	if d.at(pos) == ']' {
		return []any{}, pos + 1
	}
	d.depth++
	for base := len(d.read); ; {
		var p pair
		if p.value, pos = d.value(pos); pos < 0 {
			return nil, -1
		}
		d.read = append(d.read, p)
		switch pos = d.skip(pos); d.at(pos) {
		case ',':
			pos = d.skip(pos + 1)
		case ']':
			d.depth--
			return sliceOf(d.take(base)), pos + 1
		default:
			return nil, -1
		}
	}
}

func sliceOf(elements []pair) []any {
	array := make([]any, len(elements))
	for i := range elements {
		array[i] = elements[i].value
	}
	return array
}

func (d *decoder) str(pos int) (string, int) {
	end := plainEnd(d.text, pos+1)
	if d.at(end) == '"' && d.valid {
		return d.copied[pos+1 : end], end + 1
	}
	end, _, problem := scanString(d.text, pos)
	if problem != "" {
		return "", -1
	}
	return d.respell(d.text[pos+1 : end-1]), end
}

// respell returns the characters that a string's text means.
func (d *decoder) respell(text []byte) string {
	d.spelt = d.spelt[:0]
	for i := 0; ; {
		plain := plainEnd(text, i)
		d.spelt = append(d.spelt, text[i:plain]...)
		if plain == len(text) {
			break
		}
		e, _ := scanEscape(text, plain)
		d.spelt = utf8.AppendRune(d.spelt, e.char) // U+FFFD for a surrogate
		i = e.end
	}
	if !d.valid {
		return string(bytes.Runes(d.spelt)) // U+FFFD for each byte that is not UTF-8
	}
	return string(d.spelt)
}

func (d *decoder) number(pos int) (any, int) {
	p, _, problem := splitNumber(d.text, pos)
	if problem != "" {
		return nil, -1
	}
	text := d.copied[pos:p.end]
	if p.fraction == p.whole {
		if whole, err := strconv.ParseInt(text, 10, 64); err == nil {
			return whole, p.end
		}
	}
	number, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil, -1
	}
	return number, p.end
}
