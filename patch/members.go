package patch

import "iter"

// Members iterates over the members of an object of a Doc, or the elements of an array, in the order of the text. It
// yields the text of the key between its quotes, or nil in an array, and the value. Other values have no members. Key
// and value share the memory of doc.
func Members(doc Doc) iter.Seq2[[]byte, Doc] {
	return func(yield func([]byte, Doc) bool) {
		c := cursor{doc: doc}
		for c.next() {
			if !yield(c.key, doc[c.value:c.end:c.end]) {
				return
			}
		}
	}
}
