package patch

import "bytes"

// none is the twin of a value that has none.
const none int32 = -1

// Two versions of an object are mostly the same. A value's twin is the value at the same place in the first version. If the
// second version's value has the same text, the twin's nodes are copied instead of reading the text again.
type twins struct {
	tape   *tape
	effort int // how many more bytes may be compared in vain
	end    int // position after the value that was copied
}

// A row is what remains of the members or elements of a twin.
type row struct{ at, end int32 }

// parseNext is parseDoc for a text that is expected to resemble that of old.
func (t *tape) parseNext(doc Doc, old *tape) error {
	t.twins = twins{tape: old, effort: maxEffort * len(doc)}
	err := t.read(doc, maxDepth, 0)
	t.twins = twins{}
	if err == nil && !t.canonical() {
		err = errNotCanonical
	}
	return err
}

// reuse copies the nodes of a twin, which is a container, if the text at pos is the same. Equal text means equal nodes.
func (t *tape) reuse(pos int, twin int32) bool {
	s := &t.twins
	n := &s.tape.nodes[twin]
	length := int(n.end - n.start)
	if length > len(t.text)-pos || s.effort < 0 {
		return false
	}
	if !bytes.Equal(s.tape.text[n.start:n.end], t.text[pos:pos+length]) {
		s.effort -= length
		return false
	}
	base := len(t.nodes)
	t.nodes = append(t.nodes, s.tape.nodes[twin:n.next]...)
	shift, renumber := int32(pos)-n.start, int32(base)-twin
	for i := base; i < len(t.nodes); i++ {
		c := &t.nodes[i]
		c.start, c.end, c.next = c.start+shift, c.end+shift, c.next+renumber
	}
	t.deepest = max(t.deepest, s.tape.deepest)
	s.end = pos + length
	return true
}

// row gives the children of a twin if it is a container of the kind that is being read.
func (t *tape) row(twin int32, kind byte) row {
	if twin == none || t.twins.tape.kind(twin) != kind {
		return row{}
	}
	return row{twin + 1, t.twins.tape.nodes[twin].next}
}

// nextTwin takes the next element off a row.
func (t *tape) nextTwin(r *row) int32 {
	if r.at == r.end {
		return none
	}
	twin := r.at
	r.at = t.twins.tape.nodes[twin].next
	return twin
}

// twinOf takes the member with the same key off a row, and with it the members that sort before.
func (t *tape) twinOf(r *row, key int32) int32 {
	for old := t.twins.tape; r.at < r.end; {
		order := bytes.Compare(old.key(r.at), t.key(key))
		if order > 0 {
			return none
		}
		twin := r.at + 1
		r.at = old.nodes[twin].next
		if order == 0 {
			return twin
		}
	}
	return none
}
