package patch

import "iter"

// Members gives the members of an object of a Doc, or the elements of an array, in the order of the text. Each has the text of
// its key between the quotes, nil in an array, and its value. Other values have no members. Both share the memory of doc.
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
