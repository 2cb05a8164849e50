package patch

import (
	"bytes"
	"fmt"
)

// A reader makes the nodes of a text. It checks the whole grammar of RFC 8259, except that it accepts bytes that are
// not UTF-8.
type reader struct {
	text    []byte
	nodes   []node
	depth   int // of the container being read
	deepest int
	limit   int
	err     error
	earlier earlier
}

// A syntaxError is a problem of a text, and the byte where it is.
type syntaxError struct {
	offset  int
	problem string
}

func (e *syntaxError) Error() string {
	return fmt.Sprintf("invalid JSON at byte %d: %s", e.offset, e.problem)
}

// read reads the text. match is the root of the earlier version, or none.
func (r *reader) read(match int32) error {
	if len(r.text) > maxText {
		return &syntaxError{maxText, "the text is longer than 1 GiB"}
	}
	pos, _ := r.space(0, 0)
	if pos = r.value(pos, match); pos < 0 {
		return r.err
	}
	if pos, _ = r.space(pos, 0); pos != len(r.text) {
		return &syntaxError{pos, "data after the value"}
	}
	return nil
}

// key returns the text of a key between its quotes.
func (r *reader) key(i int32) []byte {
	n := &r.nodes[i]
	return r.text[n.start+1 : n.end-1]
}

// at returns the byte at pos, or 0 at the end. The byte 0 is valid nowhere.
func (r *reader) at(pos int) byte {
	if pos < len(r.text) {
		return r.text[pos]
	}
	return 0
}

func (r *reader) fail(pos int, problem string) int {
	if pos >= len(r.text) {
		pos, problem = len(r.text), "unexpected end"
	}
	r.err = &syntaxError{pos, problem}
	return -1
}

// space skips white space. White space makes the value around it dirty.
func (r *reader) space(pos int, f flags) (int, flags) {
	if r.at(pos) > ' ' {
		return pos, f
	}
	for ; isSpace(r.at(pos)); pos++ {
		f |= dirty
	}
	return pos, f
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

func (r *reader) leaf(pos, end int, f flags) int {
	r.nodes = append(r.nodes, node{int32(pos), int32(end), int32(len(r.nodes) + 1), f})
	return end
}

// value reads the value that begins at pos. It returns the position after it, or -1 with r.err set.
func (r *reader) value(pos int, match int32) int {
	switch c := r.at(pos); {
	case c == '"':
		return r.str(pos)
	case (c == '{' || c == '[') && match != none && r.reuse(pos, match):
		return r.earlier.end
	case c == '{':
		return r.object(pos, match)
	case c == '[':
		return r.array(pos, match)
	case c == '-' || isDigit(c):
		return r.number(pos)
	default:
		return r.literal(pos)
	}
}

func (r *reader) str(pos int) int {
	if end := plainEnd(r.text, pos+1); end < len(r.text) && r.text[end] == '"' {
		return r.leaf(pos, end+1, 0)
	}
	end, f, problem := scanString(r.text, pos)
	if problem != "" {
		return r.fail(end, problem)
	}
	return r.leaf(pos, end, f)
}

func (r *reader) number(pos int) int {
	end, f, problem := scanNumber(r.text, pos)
	if problem != "" {
		return r.fail(end, problem)
	}
	return r.leaf(pos, end, f)
}

func (r *reader) literal(pos int) int {
	for _, word := range [...]string{"true", "false", "null"} {
		if end := pos + len(word); end <= len(r.text) && string(r.text[pos:end]) == word {
			return r.leaf(pos, end, 0)
		}
	}
	return r.fail(pos, "expected a value")
}

// open begins a container. It returns -1 if the container is nested too deep.
func (r *reader) open(pos int) int {
	r.depth++
	r.deepest = max(r.deepest, r.depth)
	if r.depth > r.limit {
		return r.fail(pos, fmt.Sprintf("nested deeper than %d levels", r.limit))
	}
	r.nodes = append(r.nodes, node{start: int32(pos)})
	return len(r.nodes) - 1
}

// shut ends the container self at the bracket at pos.
func (r *reader) shut(self, pos int, f flags) int {
	r.depth--
	n := &r.nodes[self]
	n.end, n.next, n.flags = int32(pos+1), int32(len(r.nodes)), f
	return pos + 1
}

func (r *reader) array(pos int, match int32) int {
	self := r.open(pos)
	if self < 0 {
		return -1
	}
	pos, f := r.space(pos+1, 0)
	if r.at(pos) == ']' {
		return r.shut(self, pos, f)
	}
	for row := r.earlier.row(match, '['); ; {
		element := len(r.nodes)
		if pos = r.value(pos, r.earlier.next(&row)); pos < 0 {
			return -1
		}
		f |= r.nodes[element].flags & dirty
		pos, f = r.space(pos, f)
		switch r.at(pos) {
		case ',':
			pos, f = r.space(pos+1, f)
		case ']':
			return r.shut(self, pos, f)
		default:
			return r.fail(pos, "expected , or ] after an element")
		}
	}
}

func (r *reader) object(pos int, match int32) int {
	self := r.open(pos)
	if self < 0 {
		return -1
	}
	pos, f := r.space(pos+1, 0)
	if r.at(pos) == '}' {
		return r.shut(self, pos, f)
	}
	row := r.earlier.row(match, '{')
	for before := none; ; {
		key := int32(len(r.nodes))
		if pos, f = r.member(pos, f, &row); pos < 0 {
			return -1
		}
		if f&unsorted == 0 && before != none && bytes.Compare(r.key(before), r.key(key)) >= 0 {
			f |= unsorted | dirty
		}
		before = key
		switch r.at(pos) {
		case ',':
			pos, f = r.space(pos+1, f)
		case '}':
			return r.shut(self, pos, f)
		default:
			return r.fail(pos, "expected , or } after a member")
		}
	}
}

// member reads a key, its colon and its value, and returns the position after them.
func (r *reader) member(pos int, f flags, row *row) (int, flags) {
	if r.at(pos) != '"' {
		return r.fail(pos, "expected a key in quotes"), f
	}
	key := int32(len(r.nodes))
	if pos = r.str(pos); pos < 0 {
		return -1, f
	}
	if r.nodes[key].flags&dirty != 0 {
		f |= dirty | unsorted
	}
	if pos, f = r.space(pos, f); r.at(pos) != ':' {
		return r.fail(pos, "expected : after a key"), f
	}
	pos, f = r.space(pos+1, f)
	value := len(r.nodes)
	if pos = r.value(pos, r.earlier.of(row, r.key(key))); pos < 0 {
		return -1, f
	}
	return r.space(pos, f|r.nodes[value].flags&dirty)
}
