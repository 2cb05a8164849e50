package evidence

import (
	"bytes"
	"slices"

	"github.com/kuberewind/kuberewind/patch"
)

// changes are the paths in which two versions differ, except those that the server writes by itself.
type changes struct {
	written, removed []path
}

// compare descends as deep as an entry of either version. A value that no entry divides is one path.
func compare(before, after patch.Doc, entries ...[]entry) *changes {
	known, c := new(fieldSet), new(changes)
	for _, e := range slices.Concat(entries...) {
		known.add(e.fields)
	}
	c.members(nil, before, after, known)
	return c
}

func (c *changes) differ(p path, before, after patch.Doc, known *fieldSet) {
	switch {
	case bytes.Equal(before, after) || bookkeeping(p):
	case known.granular() && mixed(isObject, before, after):
		c.members(p, before, after, known)
	case known.granular() && mixed(isArray, before, after):
		c.elements(p, before, after, known)
	case after == nil:
		c.removed = append(c.removed, slices.Clone(p))
	case string(before) == "{}" || string(before) == "[]":
		// An empty map is owned as a map. That says nothing about its later members.
		c.written = append(c.written, append(slices.Clone(p), unowned))
	default:
		c.written = append(c.written, slices.Clone(p))
	}
}

// unowned is a key that no set contains.
const unowned = "?"

// bookkeeping reports whether the server writes a path by itself.
func bookkeeping(p path) bool {
	return len(p) == 2 && p[0] == "f:metadata" && (p[1] == "f:managedFields" || p[1] == "f:resourceVersion" || p[1] == "f:generation")
}

// mixed reports whether both values have a form, or one has it and the other is missing. If only an empty value appears or
// disappears, it is a leaf value.
func mixed(is func(patch.Doc) bool, before, after patch.Doc) bool {
	return (before == nil || is(before)) && (after == nil || is(after)) && len(before)+len(after) > len("{}")
}

func (c *changes) members(p path, before, after patch.Doc, known *fieldSet) {
	left := map[string]patch.Doc{}
	for key, value := range patch.Members(before) {
		left[plain(key)] = value
	}
	for key, value := range patch.Members(after) {
		name := "f:" + plain(key)
		c.differ(append(p, name), left[name[2:]], value, known.child(name))
		delete(left, name[2:])
	}
	for key, value := range left {
		c.differ(append(p, "f:"+key), value, nil, known.child("f:"+key))
	}
}

// elements compares lists by the keys of their elements. If a list cannot be divided by keys, no entry owns its change.
func (c *changes) elements(p path, before, after patch.Doc, known *fieldSet) {
	was, ok := keyed(before, known)
	is, both := keyed(after, known)
	if !ok || !both {
		c.written = append(c.written, append(slices.Clone(p), unowned))
		return
	}
	for key, value := range is {
		c.differ(append(p, key), was[key], value, known.child(key))
	}
	for key, value := range was {
		if _, stays := is[key]; !stays {
			c.differ(append(p, key), value, nil, known.child(key))
		}
	}
}

// keyed returns the elements by their keys. It returns false if an element has no key, or if two have the same key.
func keyed(list patch.Doc, known *fieldSet) (map[string]patch.Doc, bool) {
	elements := map[string]patch.Doc{}
	for _, value := range patch.Members(list) {
		key := known.element(value)
		if _, twice := elements[key]; twice || key == "" {
			return nil, false
		}
		elements[key] = value
	}
	return elements, true
}
