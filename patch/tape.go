package patch

import (
	"bytes"
	"fmt"
)

const (
	// maxDepth is the deepest nesting of a Doc, that of encoding/json.
	maxDepth = 10_000
	// maxText is the longest text read, in bytes: offsets in a tape are 32 bits wide. A field of PostgreSQL ends there too.
	maxText = 1 << 30
	// wrapDepth is what a patch adds around the values it carries: the array, and the operation.
	wrapDepth = 2
)

type flags uint8

const (
	// dirty: the text of the node is not in canonical form.
	dirty flags = 1 << iota
	// unsorted: the members of the object are out of order, repeated, or not yet comparable because a key is dirty.
	unsorted
)

// A node is one value or key of a text: text[start:end]. The nodes of a container follow it, up to next; in an object, key
// and value take turns.
type node struct {
	start, end int32
	next       int32
	flags      flags
}

// A tape lists the values of a JSON text in the order of the text, so that any of them can be skipped, compared or copied
// in one step. Parsing checks the whole grammar of RFC 8259, except that bytes which are not UTF-8 are let through.
type tape struct {
	text    []byte
	nodes   []node
	depth   int // of the container being read
	deepest int
	limit   int
	err     error
	members []entry // members of the objects being sorted, innermost last
	respelt [][]byte
	twins   twins

	// The nodes that are made of the text while a document is edited.
	values arena[value]
	opened arena[member]
	tokens arena[token]
}

// syntaxError says what is wrong with a text, and at which byte.
type syntaxError struct {
	offset  int
	problem string
}

func (e *syntaxError) Error() string {
	return fmt.Sprintf("invalid JSON at byte %d: %s", e.offset, e.problem)
}

// parse reads a text with at most limit levels of nesting. The tape refers to the text, it does not copy it.
func (t *tape) parse(text []byte, limit int) error {
	t.twins = twins{}
	return t.read(text, limit, none)
}

func (t *tape) read(text []byte, limit int, twin int32) error {
	t.text, t.nodes, t.depth, t.deepest, t.limit, t.err = text, t.nodes[:0], 0, 0, limit, nil
	if len(text) > maxText {
		return &syntaxError{maxText, "the text is longer than 1 GiB"}
	}
	pos, _ := t.space(0, 0)
	if pos = t.value(pos, twin); pos < 0 {
		return t.err
	}
	if pos, _ = t.space(pos, 0); pos != len(text) {
		return &syntaxError{pos, "data after the value"}
	}
	return nil
}

// parseDoc is parse for a text that must be canonical already.
func (t *tape) parseDoc(doc Doc) error {
	if err := t.parse(doc, maxDepth); err != nil {
		return err
	}
	if !t.canonical() {
		return errNotCanonical
	}
	return nil
}

// canonical reports whether the text that was parsed is in canonical form, all of it.
func (t *tape) canonical() bool {
	root := &t.nodes[0]
	return root.flags&dirty == 0 && root.start == 0 && int(root.end) == len(t.text)
}

func (t *tape) span(i int32) []byte {
	n := &t.nodes[i]
	return t.text[n.start:n.end:n.end]
}

// key is the text of a key between its quotes.
func (t *tape) key(i int32) []byte {
	n := &t.nodes[i]
	return t.text[n.start+1 : n.end-1]
}

func (t *tape) kind(i int32) byte { return t.text[t.nodes[i].start] }

// at is the byte at pos, or 0, which is valid nowhere, at the end.
func (t *tape) at(pos int) byte {
	if pos < len(t.text) {
		return t.text[pos]
	}
	return 0
}

func (t *tape) fail(pos int, problem string) int {
	if pos >= len(t.text) {
		pos, problem = len(t.text), "unexpected end"
	}
	t.err = &syntaxError{pos, problem}
	return -1
}

// space skips white space, which makes what surrounds it dirty.
func (t *tape) space(pos int, f flags) (int, flags) {
	if t.at(pos) > ' ' {
		return pos, f
	}
	for ; isSpace(t.at(pos)); pos++ {
		f |= dirty
	}
	return pos, f
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

func (t *tape) leaf(pos, end int, f flags) int {
	t.nodes = append(t.nodes, node{int32(pos), int32(end), int32(len(t.nodes) + 1), f})
	return end
}

// value reads the value that begins at pos and gives the position after it, or -1 with t.err set.
func (t *tape) value(pos int, twin int32) int {
	switch c := t.at(pos); {
	case c == '"':
		return t.str(pos)
	case (c == '{' || c == '[') && twin != none && t.reuse(pos, twin):
		return t.twins.end
	case c == '{':
		return t.object(pos, twin)
	case c == '[':
		return t.array(pos, twin)
	case c == '-' || isDigit(c):
		return t.number(pos)
	default:
		return t.literal(pos)
	}
}

func (t *tape) str(pos int) int {
	if end := plainEnd(t.text, pos+1); end < len(t.text) && t.text[end] == '"' {
		return t.leaf(pos, end+1, 0)
	}
	end, f, problem := scanString(t.text, pos)
	if problem != "" {
		return t.fail(end, problem)
	}
	return t.leaf(pos, end, f)
}

func (t *tape) number(pos int) int {
	end, f, problem := scanNumber(t.text, pos)
	if problem != "" {
		return t.fail(end, problem)
	}
	return t.leaf(pos, end, f)
}

func (t *tape) literal(pos int) int {
	for _, word := range [...]string{"true", "false", "null"} {
		if end := pos + len(word); end <= len(t.text) && string(t.text[pos:end]) == word {
			return t.leaf(pos, end, 0)
		}
	}
	return t.fail(pos, "expected a value")
}

// open begins a container; -1 if it is nested too deep.
func (t *tape) open(pos int) int {
	t.depth++
	t.deepest = max(t.deepest, t.depth)
	if t.depth > t.limit {
		return t.fail(pos, fmt.Sprintf("nested deeper than %d levels", t.limit))
	}
	t.nodes = append(t.nodes, node{start: int32(pos)})
	return len(t.nodes) - 1
}

// shut ends the container self at the bracket at pos.
func (t *tape) shut(self, pos int, f flags) int {
	t.depth--
	n := &t.nodes[self]
	n.end, n.next, n.flags = int32(pos+1), int32(len(t.nodes)), f
	return pos + 1
}

func (t *tape) array(pos int, twin int32) int {
	self := t.open(pos)
	if self < 0 {
		return -1
	}
	pos, f := t.space(pos+1, 0)
	if t.at(pos) == ']' {
		return t.shut(self, pos, f)
	}
	for r := t.row(twin, '['); ; {
		element := len(t.nodes)
		if pos = t.value(pos, t.nextTwin(&r)); pos < 0 {
			return -1
		}
		f |= t.nodes[element].flags & dirty
		pos, f = t.space(pos, f)
		switch t.at(pos) {
		case ',':
			pos, f = t.space(pos+1, f)
		case ']':
			return t.shut(self, pos, f)
		default:
			return t.fail(pos, "expected , or ] after an element")
		}
	}
}

func (t *tape) object(pos int, twin int32) int {
	self := t.open(pos)
	if self < 0 {
		return -1
	}
	pos, f := t.space(pos+1, 0)
	if t.at(pos) == '}' {
		return t.shut(self, pos, f)
	}
	r := t.row(twin, '{')
	for before := none; ; {
		key := int32(len(t.nodes))
		if pos, f = t.member(pos, f, &r); pos < 0 {
			return -1
		}
		if f&unsorted == 0 && before != none && bytes.Compare(t.key(before), t.key(key)) >= 0 {
			f |= unsorted | dirty
		}
		before = key
		switch t.at(pos) {
		case ',':
			pos, f = t.space(pos+1, f)
		case '}':
			return t.shut(self, pos, f)
		default:
			return t.fail(pos, "expected , or } after a member")
		}
	}
}

// member reads a key, its colon and its value, and gives the position after them.
func (t *tape) member(pos int, f flags, r *row) (int, flags) {
	if t.at(pos) != '"' {
		return t.fail(pos, "expected a key in quotes"), f
	}
	key := int32(len(t.nodes))
	if pos = t.str(pos); pos < 0 {
		return -1, f
	}
	if t.nodes[key].flags&dirty != 0 {
		f |= dirty | unsorted
	}
	if pos, f = t.space(pos, f); t.at(pos) != ':' {
		return t.fail(pos, "expected : after a key"), f
	}
	pos, f = t.space(pos+1, f)
	value := len(t.nodes)
	if pos = t.value(pos, t.twinOf(r, key)); pos < 0 {
		return -1, f
	}
	return t.space(pos, f|t.nodes[value].flags&dirty)
}
