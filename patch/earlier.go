package patch

import "bytes"

// none is the match of a value that has none.
const none int32 = -1

// Two versions of an object are mostly the same. The match of a value is the value at the same place in the earlier
// version. If the two have the same text, the reader copies the match's nodes instead of reading the text again.
type earlier struct {
	tape   *tape
	effort int // how many more bytes may be compared without success
	end    int // position after the value that was copied
}

// A row holds the remaining members or elements of a match.
type row struct{ at, end int32 }

// reuse copies the nodes of a match, which is a container, if the text at pos is the same. Equal text means equal
// nodes.
func (r *reader) reuse(pos int, match int32) bool {
	s := &r.earlier
	n := &s.tape.nodes[match]
	length := int(n.end - n.start)
	if length > len(r.text)-pos || s.effort < 0 {
		return false
	}
	if !bytes.Equal(s.tape.text[n.start:n.end], r.text[pos:pos+length]) {
		s.effort -= length
		return false
	}
	base := len(r.nodes)
	r.nodes = append(r.nodes, s.tape.nodes[match:n.next]...)
	shift, renumber := int32(pos)-n.start, int32(base)-match
	for i := base; i < len(r.nodes); i++ {
		c := &r.nodes[i]
		c.start, c.end, c.next = c.start+shift, c.end+shift, c.next+renumber
	}
	r.deepest = max(r.deepest, s.tape.deepest)
	s.end = pos + length
	return true
}

// row returns the children of a match if it is a container of the kind that is being read.
func (t *earlier) row(match int32, kind byte) row {
	if match == none || t.tape.kind(match) != kind {
		return row{}
	}
	return row{match + 1, t.tape.nodes[match].next}
}

// next removes the next element from a row.
func (t *earlier) next(r *row) int32 {
	if r.at == r.end {
		return none
	}
	match := r.at
	r.at = t.tape.nodes[match].next
	return match
}

// of removes the member with this key from a row, and the members that sort before it. It returns the value of that
// member.
func (t *earlier) of(r *row, key []byte) int32 {
	for old := t.tape; r.at < r.end; {
		order := bytes.Compare(old.key(r.at), key)
		if order > 0 {
			return none
		}
		match := r.at + 1
		r.at = old.nodes[match].next
		if order == 0 {
			return match
		}
	}
	return none
}
