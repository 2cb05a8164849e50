package patch

import (
	"bytes"
	"fmt"
)

// A Path selects values of a document. ParsePath makes it.
type Path struct {
	text   string
	tokens []string
}

// wildcard is the token of a Path that selects every member or element.
const wildcard = "*"

// ParsePath reads a pointer of RFC 6901 in which the token "*" stands for every member or element, such as "/data/*" or
// "/spec/containers/*/env". The path "" selects the whole document.
func ParsePath(text string) (Path, error) {
	tokens, err := splitPointer(text)
	return Path{text, tokens}, err
}

// String returns the text that was parsed.
func (p Path) String() string { return p.text }

// Rewrite returns doc with each value that any of the paths selects replaced by the result of f. It calls f in the
// order of the text, once for each selected value, even if several paths select it. It does not call f for values
// inside a selected value. The pointer of a call is that of RFC 6901. The result of f must be a Doc. If nothing
// changes, Rewrite returns doc itself. It returns an error of f unchanged.
func Rewrite(doc Doc, paths []Path, f func(pointer string, value Doc) (Doc, error)) (Doc, error) {
	if len(paths) == 0 {
		return doc, nil
	}
	r := rewriter{doc: doc, f: f}
	if err := r.value(0, paths, 0); err != nil {
		return nil, err
	}
	if r.out == nil {
		return doc, nil
	}
	return append(r.out, doc[r.copied:]...), nil
}

type rewriter struct {
	doc     Doc
	f       func(string, Doc) (Doc, error)
	pointer []byte
	out     Doc // nil until something changes
	copied  int // how much of doc is in out
}

// value rewrites the value at pos. The first depth tokens of the paths lead to it.
func (r *rewriter) value(pos int, paths []Path, depth int) error {
	for _, p := range paths {
		if len(p.tokens) == depth {
			return r.replace(pos)
		}
	}
	c := cursor{doc: r.doc, pos: pos}
	var through []Path
	for n := 0; c.next(); n++ {
		through = through[:0]
		for _, p := range paths {
			if selects(p.tokens[depth], c.key, n) {
				through = append(through, p)
			}
		}
		if len(through) == 0 {
			continue
		}
		if err := r.child(&c, n, through, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// selects reports whether a token selects the member with this key or, if key is nil, the element with this index.
func selects(token string, key []byte, index int) bool {
	if token == wildcard {
		return true
	}
	if key != nil {
		return keyMeans(key, token)
	}
	i, ok := arrayIndex(token)
	return ok && i == index
}

// child rewrites the value at the cursor, with its token appended to the pointer.
func (r *rewriter) child(c *cursor, index int, paths []Path, depth int) error {
	length := len(r.pointer)
	if c.key != nil {
		r.pointer = appendToken(r.pointer, appendDecoded(nil, c.key))
	} else {
		r.pointer = fmt.Appendf(r.pointer, "/%d", index)
	}
	err := r.value(c.value, paths, depth)
	r.pointer = r.pointer[:length]
	return err
}

func (r *rewriter) replace(pos int) error {
	end := skipValue(r.doc, pos)
	if end < 0 {
		return fmt.Errorf("patch: rewrite %q: %w", r.pointer, errNotCanonical)
	}
	before := r.doc[pos:end:end]
	after, err := r.f(string(r.pointer), before)
	if err != nil || bytes.Equal(before, after) {
		return err
	}
	if len(after) == 0 {
		return fmt.Errorf("patch: rewrite %q: the new value is empty", r.pointer)
	}
	if r.out == nil {
		r.out = make(Doc, 0, len(r.doc)+len(after))
	}
	r.out = append(append(r.out, r.doc[r.copied:pos]...), after...)
	r.copied = end
	return nil
}
