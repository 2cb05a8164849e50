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

// reuse copies the nodes of a twin, which is a container, if the text at pos is the same. Equal text means equal nodes.
func (r *reader) reuse(pos int, twin int32) bool {
	s := &r.twins
	n := &s.tape.nodes[twin]
	length := int(n.end - n.start)
	if length > len(r.text)-pos || s.effort < 0 {
		return false
	}
	if !bytes.Equal(s.tape.text[n.start:n.end], r.text[pos:pos+length]) {
		s.effort -= length
		return false
	}
	base := len(r.nodes)
	r.nodes = append(r.nodes, s.tape.nodes[twin:n.next]...)
	shift, renumber := int32(pos)-n.start, int32(base)-twin
	for i := base; i < len(r.nodes); i++ {
		c := &r.nodes[i]
		c.start, c.end, c.next = c.start+shift, c.end+shift, c.next+renumber
	}
	r.deepest = max(r.deepest, s.tape.deepest)
	s.end = pos + length
	return true
}

// row gives the children of a twin if it is a container of the kind that is being read.
func (t *twins) row(twin int32, kind byte) row {
	if twin == none || t.tape.kind(twin) != kind {
		return row{}
	}
	return row{twin + 1, t.tape.nodes[twin].next}
}

// next takes the next element off a row.
func (t *twins) next(r *row) int32 {
	if r.at == r.end {
		return none
	}
	twin := r.at
	r.at = t.tape.nodes[twin].next
	return twin
}

// of takes the member with this key off a row, and with it the members that sort before.
func (t *twins) of(r *row, key []byte) int32 {
	for old := t.tape; r.at < r.end; {
		order := bytes.Compare(old.key(r.at), key)
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
