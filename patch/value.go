package patch

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sort"
)

// A token is one reference token of a path, unescaped, in the canonical text of a string: keys are compared as they are
// spelt.
type token []byte

func (t token) equal(other token) bool { return bytes.Equal(t, other) }

// pathText spells a path for an error.
func pathText(path []token) string {
	var text []byte
	for _, t := range path {
		text = appendToken(text, t)
	}
	return fmt.Sprintf(`"%s"`, text)
}

// A value is a part of a document that is being edited. Until an operation changes a part of it, it is a node of a
// tape.
type value struct {
	src     *tape
	node    int32
	opened  bool
	members []member
}

// A member is a member of an object or, without a key, an element of an array.
type member struct {
	key   token
	value *value
}

func (v *value) kind() byte { return v.src.kind(v.node) }

// open lists the members of a container. The node still says what kind of container it is.
func (v *value) open() {
	if v.opened {
		return
	}
	v.opened = true
	if v.kind() == '{' {
		v.openObject()
	} else {
		v.openArray()
	}
}

func (v *value) openObject() {
	end, count := v.src.nodes[v.node].next, 0
	for key := v.node + 1; key < end; key = v.src.nodes[key+1].next {
		count++
	}
	values := v.src.parts.values.take(count)
	v.members = v.src.parts.opened.take(count + 1)[:0]
	for key := v.node + 1; key < end; key = v.src.nodes[key+1].next {
		child := &values[len(v.members)]
		child.src, child.node = v.src, key+1
		v.members = append(v.members, member{v.src.key(key), child})
	}
}

func (v *value) openArray() {
	end, count := v.src.nodes[v.node].next, 0
	for element := v.node + 1; element < end; element = v.src.nodes[element].next {
		count++
	}
	values := v.src.parts.values.take(count)
	v.members = v.src.parts.opened.take(count + 1)[:0]
	for element := v.node + 1; element < end; element = v.src.nodes[element].next {
		child := &values[len(v.members)]
		child.src, child.node = v.src, element
		v.members = append(v.members, member{value: child})
	}
}

// locate returns the place that a token names in a container. In an object it is the place of the member, or the place
// to insert it. In an array it is the index, which may be beyond the end. found reports whether there is a value.
func (v *value) locate(t token) (at int, found bool, err error) {
	switch v.kind() {
	case '{':
		v.open()
		at = sort.Search(len(v.members), func(i int) bool { return bytes.Compare(v.members[i].key, t) >= 0 })
		return at, at < len(v.members) && bytes.Equal(v.members[at].key, t), nil
	case '[':
		v.open()
		index, ok := arrayIndex(t)
		if !ok && string(t) != "-" {
			return 0, false, fmt.Errorf("%q is not an index of an array: %w", t, ErrNotFound)
		}
		return index, ok && index < len(v.members), nil
	default:
		return 0, false, fmt.Errorf("no %q in a value that is neither object nor array: %w", t, ErrNotFound)
	}
}

// cut removes a member. The shorter side moves, so that emptying a long array from either end is fast.
func (v *value) cut(at int) {
	if at < len(v.members)/2 {
		copy(v.members[1:at+1], v.members[:at])
		v.members = v.members[1:]
		return
	}
	v.members = slices.Delete(v.members, at, at+1)
}

// text returns the value's text. It is copied only if it was edited.
func (v *value) text() ([]byte, error) {
	if !v.opened {
		return v.src.span(v.node), nil
	}
	return v.append(nil, 0)
}

// append writes the value, which is nested in depth containers.
func (v *value) append(dst []byte, depth int) (_ []byte, err error) {
	if !v.opened {
		return append(dst, v.src.span(v.node)...), nil
	}
	if depth >= maxDepth {
		return nil, errTooDeep
	}
	kind := v.kind()
	dst = append(dst, kind)
	for i, m := range v.members {
		if i > 0 {
			dst = append(dst, ',')
		}
		if kind == '{' {
			dst = append(append(append(dst, '"'), m.key...), '"', ':')
		}
		if dst, err = m.value.append(dst, depth+1); err != nil {
			return nil, err
		}
	}
	return append(dst, kind+2), nil
}

// An operation is one element of a patch.
type operation struct {
	name       string
	path, from []token
	value      int32 // node in the patch
	pathSpelt  []byte
}

// label names the operation in errors, as far as it could be read.
func (op *operation) label() string {
	if op.name == "" {
		return ""
	}
	return fmt.Sprintf(" (%s %s)", op.name, op.pathSpelt)
}

var errOperation = errors.New(`"op" must be add, remove, replace, move, copy or test`)

// readOperation reads an element of a canonical patch.
func readOperation(t *tape, i int32) (op operation, err error) {
	if t.kind(i) != '{' {
		return op, errors.New("an operation must be an object")
	}
	var name, path, from int32 // nodes; 0, the patch itself, if missing
	for key := i + 1; key < t.nodes[i].next; key = t.nodes[key+1].next {
		switch string(t.key(key)) {
		case "op":
			name = key + 1
		case "path":
			path = key + 1
		case "from":
			from = key + 1
		case "value":
			op.value = key + 1
		}
	}
	if op.name = operationName(t.span(name)); name == 0 || op.name == "" {
		return op, errOperation
	}
	return op, op.complete(t, path, from)
}

// operationName returns the name that a string spells, or "".
func operationName(quoted []byte) string {
	for _, name := range [...]string{"add", "remove", "replace", "move", "copy", "test"} {
		if len(quoted) == len(name)+2 && string(quoted[1:len(quoted)-1]) == name {
			return name
		}
	}
	return ""
}

// complete reads the members that the operation needs.
func (op *operation) complete(t *tape, path, from int32) (err error) {
	if op.path, err = readPath(t, path, "path"); err != nil {
		return err
	}
	op.pathSpelt = t.span(path)
	switch op.name {
	case "add", "replace", "test":
		if op.value == 0 {
			return errors.New(`"value" is missing`)
		}
	case "move", "copy":
		op.from, err = readPath(t, from, "from")
	}
	return err
}

// readPath reads the pointer of RFC 6901 that the string at node i spells.
func readPath(t *tape, i int32, name string) ([]token, error) {
	if i == 0 {
		return nil, fmt.Errorf("%q is missing", name)
	}
	if t.kind(i) != '"' {
		return nil, fmt.Errorf("%q is not a string", name)
	}
	text := t.key(i)
	if len(text) == 0 {
		return nil, nil
	}
	if text[0] != '/' {
		return nil, fmt.Errorf("%q does not begin with /", name)
	}
	tokens := t.parts.tokens.take(bytes.Count(text, []byte("/")))[:0]
	for part := range bytes.SplitSeq(text[1:], []byte("/")) {
		plain, ok := unescapeToken(part)
		if !ok {
			return nil, fmt.Errorf("%q has a ~ that is not ~0 or ~1", name)
		}
		tokens = append(tokens, plain)
	}
	return tokens, nil
}
