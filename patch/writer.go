package patch

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
)

// A writer writes nodes of a tape in canonical form.
type writer struct {
	tape    *tape
	members []entry  // members of the objects being sorted, innermost last
	respelt [][]byte // canonical texts of keys
}

// forget drops everything that belongs to a text.
func (w *writer) forget() {
	w.tape = nil
	clear(w.respelt)
	w.respelt = w.respelt[:0]
}

// node appends the canonical form of a node. It copies canonical parts in one piece.
func (w *writer) node(dst []byte, i int32) []byte {
	text := w.tape.span(i)
	switch n := &w.tape.nodes[i]; {
	case n.flags&dirty == 0:
		return append(dst, text...)
	case text[0] == '{' && n.flags&unsorted != 0:
		return w.unsorted(dst, i)
	case text[0] == '{':
		return w.object(dst, i)
	case text[0] == '[':
		return w.array(dst, i)
	case text[0] == '"':
		return append(appendText(append(dst, '"'), text[1:len(text)-1]), '"')
	default:
		return appendNumber(dst, text)
	}
}

func (w *writer) array(dst []byte, i int32) []byte {
	dst = append(dst, '[')
	for element := i + 1; element < w.tape.nodes[i].next; element = w.tape.nodes[element].next {
		if element > i+1 {
			dst = append(dst, ',')
		}
		dst = w.node(dst, element)
	}
	return append(dst, ']')
}

// object appends an object whose keys are canonical and in order.
func (w *writer) object(dst []byte, i int32) []byte {
	dst = append(dst, '{')
	for key := i + 1; key < w.tape.nodes[i].next; key = w.tape.nodes[key+1].next {
		if key > i+1 {
			dst = append(dst, ',')
		}
		dst = append(append(dst, w.tape.span(key)...), ':')
		dst = w.node(dst, key+1)
	}
	return append(dst, '}')
}

// An entry is a member of an object that is being sorted.
type entry struct {
	prefix  uint64 // the first eight bytes of the key, which decide most comparisons
	node    int32  // of the key
	respelt int32  // number of a dirty key's canonical text in writer.respelt, from 1; otherwise 0
}

// entryKey returns the canonical text of a key, between its quotes.
func (w *writer) entryKey(e entry) []byte {
	if e.respelt > 0 {
		return w.respelt[e.respelt-1]
	}
	return w.tape.key(e.node)
}

// compareEntries orders by key, then by place in the text.
func (w *writer) compareEntries(a, b entry) int {
	if a.prefix != b.prefix {
		return cmp.Compare(a.prefix, b.prefix)
	}
	if c := bytes.Compare(w.entryKey(a), w.entryKey(b)); c != 0 {
		return c
	}
	return cmp.Compare(a.node, b.node)
}

// keyPrefix reads the first eight bytes of a key as a number of the same order. Missing bytes count as zero, which no
// key contains.
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

// unsorted appends an object whose members must be sorted. If members share a key, it writes the last one.
func (w *writer) unsorted(dst []byte, i int32) []byte {
	base := len(w.members)
	w.collect(i)
	members := w.members[base:]
	w.sortEntries(members)
	open := len(dst)
	dst = append(dst, '{')
	for m, e := range members {
		key := w.entryKey(e)
		if m+1 < len(members) && e.prefix == members[m+1].prefix && bytes.Equal(key, w.entryKey(members[m+1])) {
			continue
		}
		if len(dst) > open+1 {
			dst = append(dst, ',')
		}
		dst = append(append(append(dst, '"'), key...), '"', ':')
		dst = w.node(dst, e.node+1)
	}
	w.members = w.members[:base]
	return append(dst, '}')
}

func (w *writer) collect(i int32) {
	for key := i + 1; key < w.tape.nodes[i].next; key = w.tape.nodes[key+1].next {
		e := entry{node: key}
		if w.tape.nodes[key].flags&dirty != 0 {
			w.respelt = append(w.respelt, appendText(nil, w.tape.key(key)))
			e.respelt = int32(len(w.respelt))
		}
		e.prefix = keyPrefix(w.entryKey(e))
		w.members = append(w.members, e)
	}
}

// sortEntries sorts short objects by insertion; nearly all objects are short.
func (w *writer) sortEntries(members []entry) {
	if len(members) > 24 {
		slices.SortFunc(members, w.compareEntries)
		return
	}
	for i := 1; i < len(members); i++ {
		e, j := members[i], i
		for ; j > 0 && w.compareEntries(e, members[j-1]) < 0; j-- {
			members[j] = members[j-1]
		}
		members[j] = e
	}
}
