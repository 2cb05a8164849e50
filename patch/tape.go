package patch

import "sync"

const (
	// maxDepth is the deepest nesting of a Doc, the same as in encoding/json.
	maxDepth = 10_000
	// maxText is the longest text read, in bytes: offsets in a tape are 32 bits wide. It is also the limit of a field
	// of PostgreSQL.
	maxText = 1 << 30
	// wrapDepth is the nesting that a patch adds around its values: the array, and the operation.
	wrapDepth = 2
)

type flags uint8

const (
	// dirty: the text of the node is not in canonical form.
	dirty flags = 1 << iota
	// unsorted: the members of the object are out of order, repeated, or not yet comparable because a key is dirty.
	unsorted
)

// A node is one value or key of a text: text[start:end]. The nodes of a container follow it, up to next; in an object,
// key and value alternate.
type node struct {
	start, end int32
	next       int32
	flags      flags
}

// A tape lists the values of a JSON text in the order of the text, so that any of them can be skipped, compared or
// copied in one step.
type tape struct {
	text    []byte
	nodes   []node
	deepest int // nesting of the text

	writer writer
	parts  parts
}

// parse reads a text with at most limit levels of nesting. The tape refers to the text and does not copy it.
func (t *tape) parse(text []byte, limit int) error { return t.read(text, limit, earlier{}, none) }

// parseDoc is parse for a text that must be canonical.
func (t *tape) parseDoc(doc Doc) error {
	if err := t.parse(doc, maxDepth); err != nil {
		return err
	}
	return t.mustBeCanonical()
}

// parseNext is parseDoc for a text that probably resembles the text of old.
func (t *tape) parseNext(doc Doc, old *tape) error {
	if err := t.read(doc, maxDepth, earlier{tape: old, effort: maxEffort * len(doc)}, 0); err != nil {
		return err
	}
	return t.mustBeCanonical()
}

func (t *tape) read(text []byte, limit int, earlier earlier, match int32) error {
	r := reader{text: text, nodes: t.nodes[:0], limit: limit, earlier: earlier}
	err := r.read(match)
	t.text, t.nodes, t.deepest = text, r.nodes, r.deepest
	return err
}

func (t *tape) mustBeCanonical() error {
	if !t.canonical() {
		return errNotCanonical
	}
	return nil
}

// canonical reports whether the whole parsed text is in canonical form.
func (t *tape) canonical() bool {
	root := &t.nodes[0]
	return root.flags&dirty == 0 && root.start == 0 && int(root.end) == len(t.text)
}

func (t *tape) span(i int32) []byte {
	n := &t.nodes[i]
	return t.text[n.start:n.end:n.end]
}

// key returns the text of a key between its quotes.
func (t *tape) key(i int32) []byte {
	n := &t.nodes[i]
	return t.text[n.start+1 : n.end-1]
}

func (t *tape) kind(i int32) byte { return t.text[t.nodes[i].start] }

// appendNode appends the canonical form of a node.
func (t *tape) appendNode(dst []byte, i int32) []byte {
	t.writer.tape = t
	return t.writer.node(dst, i)
}

// tapes keeps the memory of tapes between calls.
var tapes = sync.Pool{New: func() any { return new(tape) }}

// maxKept bounds the nodes of a tape that is kept for the next call: 1 MiB.
const maxKept = 1 << 16

func (t *tape) release() {
	t.forget()
	if cap(t.nodes) <= maxKept && cap(t.writer.members) <= maxKept {
		tapes.Put(t)
	}
}

// forget drops everything that belongs to a text.
func (t *tape) forget() {
	t.text = nil
	t.writer.forget()
	t.parts.forget()
}

// parts is the memory for the parts of a document while it is edited.
type parts struct {
	values arena[value]
	opened arena[member]
	tokens arena[token]
}

func (p *parts) forget() {
	p.values.reset()
	p.opened.reset()
	p.tokens.reset()
}
