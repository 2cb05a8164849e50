package patch

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// A Doc is one JSON value as canonical text: two Docs hold equal values if and only if their bytes are equal. A Doc is
// never changed in place, by this package or by those who hold one, so Docs may share memory.
type Doc []byte

var errNotCanonical = errors.New("the text is not in canonical form")

// tapes keeps the memory of tapes between calls.
var tapes = sync.Pool{New: func() any { return new(tape) }}

// maxKept bounds the nodes of a tape that is kept for the next call: 1 MiB.
const maxKept = 1 << 16

func (t *tape) release() {
	t.forget()
	if cap(t.nodes) <= maxKept && cap(t.members) <= maxKept {
		tapes.Put(t)
	}
}

// forget drops all that belongs to a text.
func (t *tape) forget() {
	t.text, t.err = nil, nil
	clear(t.respelt)
	t.respelt = t.respelt[:0]
	t.values.reset()
	t.opened.reset()
	t.tokens.reset()
}

// Canonical gives the canonical form of a JSON text. The error names the byte at which the text is not JSON, is nested
// deeper than 10,000 levels, or is longer than 1 GiB.
func Canonical(text []byte) (Doc, error) {
	return AppendCanonical(nil, text)
}

// AppendCanonical appends the canonical form of a JSON text to dst. After an error dst is as it was.
func AppendCanonical(dst, text []byte) ([]byte, error) {
	t := tapes.Get().(*tape)
	defer t.release()
	if err := t.parse(text, maxDepth); err != nil {
		return dst, fmt.Errorf("patch: %w", err)
	}
	return t.appendNode(slices.Grow(dst, len(t.span(0))), 0), nil
}

// Digest is the first 16 bytes of the SHA-256 of a Doc. Equal values have equal digests.
func Digest(doc Doc) [16]byte {
	sum := sha256.Sum256(doc)
	return [16]byte(sum[:16])
}

// appendNode appends the canonical form of a node. Canonical parts are copied in one piece.
func (t *tape) appendNode(dst []byte, i int32) []byte {
	text := t.span(i)
	switch n := &t.nodes[i]; {
	case n.flags&dirty == 0:
		return append(dst, text...)
	case text[0] == '{' && n.flags&unsorted != 0:
		return t.appendUnsorted(dst, i)
	case text[0] == '{':
		return t.appendObject(dst, i)
	case text[0] == '[':
		return t.appendArray(dst, i)
	case text[0] == '"':
		return append(appendText(append(dst, '"'), text[1:len(text)-1]), '"')
	default:
		return appendNumber(dst, text)
	}
}

func (t *tape) appendArray(dst []byte, i int32) []byte {
	dst = append(dst, '[')
	for element := i + 1; element < t.nodes[i].next; element = t.nodes[element].next {
		if element > i+1 {
			dst = append(dst, ',')
		}
		dst = t.appendNode(dst, element)
	}
	return append(dst, ']')
}

// appendObject appends an object whose keys are canonical and in order.
func (t *tape) appendObject(dst []byte, i int32) []byte {
	dst = append(dst, '{')
	for key := i + 1; key < t.nodes[i].next; key = t.nodes[key+1].next {
		if key > i+1 {
			dst = append(dst, ',')
		}
		dst = append(append(dst, t.span(key)...), ':')
		dst = t.appendNode(dst, key+1)
	}
	return append(dst, '}')
}

// An entry is a member of an object that is being sorted.
type entry struct {
	prefix  uint64 // the first eight bytes of the key, so that most comparisons need no more
	node    int32  // of the key
	respelt int32  // where the canonical text of a dirty key is kept, from 1; else 0
}

// entryKey is the canonical text of a key, between its quotes.
func (t *tape) entryKey(e entry) []byte {
	if e.respelt > 0 {
		return t.respelt[e.respelt-1]
	}
	return t.key(e.node)
}

// compareEntries orders by key, then by place in the text.
func (t *tape) compareEntries(a, b entry) int {
	if a.prefix != b.prefix {
		return cmp.Compare(a.prefix, b.prefix)
	}
	if c := bytes.Compare(t.entryKey(a), t.entryKey(b)); c != 0 {
		return c
	}
	return cmp.Compare(a.node, b.node)
}

// keyPrefix reads the first eight bytes of a key as a number of the same order. Missing ones count as zero, which no key
// contains.
func keyPrefix(key []byte) uint64 {
	if len(key) >= 8 {
		return binary.BigEndian.Uint64(key)
	}
	var prefix uint64
	for i, c := range key {
		prefix |= uint64(c) << (56 - 8*i)
	}
	return prefix
}

// appendUnsorted appends an object whose members must be sorted. Of members with one key the last is taken.
func (t *tape) appendUnsorted(dst []byte, i int32) []byte {
	base := len(t.members)
	t.collect(i)
	members := t.members[base:]
	t.sortEntries(members)
	open := len(dst)
	dst = append(dst, '{')
	for m, e := range members {
		key := t.entryKey(e)
		if m+1 < len(members) && e.prefix == members[m+1].prefix && bytes.Equal(key, t.entryKey(members[m+1])) {
			continue
		}
		if len(dst) > open+1 {
			dst = append(dst, ',')
		}
		dst = append(append(append(dst, '"'), key...), '"', ':')
		dst = t.appendNode(dst, e.node+1)
	}
	t.members = t.members[:base]
	return append(dst, '}')
}

func (t *tape) collect(i int32) {
	for key := i + 1; key < t.nodes[i].next; key = t.nodes[key+1].next {
		e := entry{node: key}
		if t.nodes[key].flags&dirty != 0 {
			t.respelt = append(t.respelt, appendText(nil, t.key(key)))
			e.respelt = int32(len(t.respelt))
		}
		e.prefix = keyPrefix(t.entryKey(e))
		t.members = append(t.members, e)
	}
}

// sortEntries sorts by insertion what is short, as nearly all objects are.
func (t *tape) sortEntries(members []entry) {
	if len(members) > 24 {
		slices.SortFunc(members, t.compareEntries)
		return
	}
	for i := 1; i < len(members); i++ {
		e, j := members[i], i
		for ; j > 0 && t.compareEntries(e, members[j-1]) < 0; j-- {
			members[j] = members[j-1]
		}
		members[j] = e
	}
}
