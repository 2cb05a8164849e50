package blame

import (
	"bytes"
	"errors"
	"slices"
	"strconv"

	"github.com/kuberewind/kuberewind/patch"
)

// A node is one value of the object, with the version that set it.
type node struct {
	origin   *Origin
	members  map[string]*node // of an object
	elements []*node          // of a list
}

// build returns the nodes of a value that one version set as a whole.
func build(value patch.Doc, o *Origin) *node {
	n := &node{origin: o}
	switch {
	case isObject(value):
		n.members = map[string]*node{}
		for key, member := range patch.Members(value) {
			n.members[plain(key)] = build(member, o)
		}
	case isList(value):
		for _, element := range patch.Members(value) {
			n.elements = append(n.elements, build(element, o))
		}
	}
	return n
}

func isObject(value patch.Doc) bool { return len(value) > 0 && value[0] == '{' }
func isList(value patch.Doc) bool   { return len(value) > 0 && value[0] == '[' }

// plain returns the key that a JSON text without its quotes spells.
func plain(key []byte) string {
	if bytes.IndexByte(key, '\\') < 0 {
		return string(key)
	}
	text, _ := patch.Unquote(slices.Concat([]byte(`"`), key, []byte(`"`)))
	return string(text)
}

var (
	errNowhere   = errors.New("the previous version has no such path")
	errOperation = errors.New("unknown patch operation")
)

// An edit applies one version to the nodes.
type edit struct {
	origin *Origin
	shrunk []*node // containers that lost a member
}

// do applies an operation to the nodes of an object.
func (e *edit) do(root *node, op patch.Operation) error {
	switch op.Op {
	case "add":
		return root.put(op.Path, build(op.Value, e.origin))
	case "remove":
		_, err := e.cut(root, op.Path)
		return err
	case "replace":
		old := root.find(op.Path)
		if old == nil {
			return errNowhere
		}
		old.replace(op.Old, op.Value, e.origin)
		return nil
	case "move":
		moved, err := e.cut(root, op.From)
		if err != nil {
			return err
		}
		return root.put(op.Path, moved)
	}
	return errOperation
}

// cut removes a value from its container.
func (e *edit) cut(root *node, path []string) (*node, error) {
	in, token := root.parent(path)
	if in == nil {
		return nil, errNowhere
	}
	value := in.members[token]
	if i, ok := in.index(token); ok {
		value = in.elements[i]
		in.elements = slices.Delete(in.elements, i, i+1)
	}
	if value == nil {
		return nil, errNowhere
	}
	delete(in.members, token)
	e.shrunk = append(e.shrunk, in)
	return value, nil
}

// end sets the origin of the containers that became {} or [].
func (e *edit) end() {
	for _, n := range e.shrunk {
		n.emptied(e.origin)
	}
}

// find returns the node at a path, or nil.
func (n *node) find(path []string) *node {
	for _, token := range path {
		if n == nil {
			return nil
		}
		if i, ok := n.index(token); ok {
			n = n.elements[i]
		} else {
			n = n.members[token]
		}
	}
	return n
}

// index reads a token as the index of an existing element.
func (n *node) index(token string) (int, bool) {
	i, err := strconv.Atoi(token)
	return i, err == nil && n.members == nil && i >= 0 && i < len(n.elements)
}

// parent returns the container of the value at a path, and the last token.
func (n *node) parent(path []string) (*node, string) {
	if len(path) == 0 {
		return nil, ""
	}
	return n.find(path[:len(path)-1]), path[len(path)-1]
}

func (n *node) put(path []string, value *node) error {
	if len(path) == 0 {
		*n = *value
		return nil
	}
	in, token := n.parent(path)
	if in == nil {
		return errNowhere
	}
	if in.members != nil {
		in.members[token] = value
		return nil
	}
	i, err := strconv.Atoi(token)
	if token == "-" {
		i, err = len(in.elements), nil
	}
	if err != nil || i < 0 || i > len(in.elements) {
		return errNowhere
	}
	in.elements = slices.Insert(in.elements, i, value)
	return nil
}

// emptied sets the origin of a container that became {} or [].
func (n *node) emptied(o *Origin) {
	if len(n.members)+len(n.elements) == 0 {
		n.origin = o
	}
}

// replace sets a new value. Equal parts keep their origin.
func (n *node) replace(before, after patch.Doc, o *Origin) {
	switch {
	case bytes.Equal(before, after):
	case isObject(before) && isObject(after):
		n.replaceMembers(before, after, o)
	case isList(before) && isList(after):
		n.replaceElements(elements(before), elements(after), o)
	default:
		*n = *build(after, o)
	}
}

func (n *node) replaceMembers(before, after patch.Doc, o *Origin) {
	old := map[string]patch.Doc{}
	for key, value := range patch.Members(before) {
		old[plain(key)] = value
	}
	left := map[string]*node{}
	for key, value := range patch.Members(after) {
		name := plain(key)
		if member := n.members[name]; member != nil && old[name] != nil {
			member.replace(old[name], value, o)
			left[name] = member
		} else {
			left[name] = build(value, o)
		}
	}
	n.members = left
	n.emptied(o)
}

func elements(list patch.Doc) (all []patch.Doc) {
	for _, element := range patch.Members(list) {
		all = append(all, element)
	}
	return all
}

// replaceElements keeps the common end of both lists, and compares the other elements index by index.
func (n *node) replaceElements(before, after []patch.Doc, o *Origin) {
	if len(before) != len(n.elements) {
		before = make([]patch.Doc, len(n.elements)) // equal to nothing
	}
	tail := 0
	for tail < len(before) && tail < len(after) && bytes.Equal(before[len(before)-1-tail], after[len(after)-1-tail]) {
		tail++
	}
	var left []*node
	for i, value := range after[:len(after)-tail] {
		if i < len(before)-tail {
			n.elements[i].replace(before[i], value, o)
			left = append(left, n.elements[i])
		} else {
			left = append(left, build(value, o))
		}
	}
	n.elements = append(left, n.elements[len(n.elements)-tail:]...)
	n.emptied(o)
}
