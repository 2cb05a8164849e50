package kube

import (
	"bytes"
	"slices"
	"strings"

	"github.com/kuberewind/kuberewind/patch"
)

// A fieldPath is the keys that lead to a field, as the text between their quotes.
type fieldPath [][]byte

// An operation is one of a patch. Its path is the text between the quotes.
type operation struct {
	path     []byte
	old, new patch.Doc // nil if there is none
}

func readOperation(text patch.Doc) (o operation) {
	for key, value := range patch.Members(text) {
		switch string(key) {
		case "path":
			o.path = value[1 : len(value)-1]
		case "old":
			o.old = value
		case "value":
			o.new = value
		}
	}
	return o
}

// changes reports whether a patch changes something at a pointer, below or above it.
func changes(text []byte, pointer string) bool {
	for _, operation := range patch.Members(text) {
		path := string(readOperation(operation).path)
		if within(path, pointer) || within(pointer, path) {
			return true
		}
	}
	return false
}

// within reports whether a pointer leads to or through another.
func within(pointer, other string) bool {
	rest, ok := strings.CutPrefix(pointer, other)
	return ok && (rest == "" || rest[0] == '/')
}

// changedPaths are the paths that somebody has changed.
func changedPaths(text []byte) (paths []fieldPath) {
	for _, operation := range patch.Members(text) {
		o := readOperation(operation)
		paths = appendChanged(paths, splitPath(o.path), o.old, o.new)
	}
	return slices.DeleteFunc(paths, func(path fieldPath) bool {
		return len(path) > 1 && string(path[0]) == "metadata" && slices.Contains(notWritten, string(path[1]))
	})
}

// splitPath gives the keys of a JSON pointer (RFC 6901).
func splitPath(pointer []byte) fieldPath {
	if len(pointer) == 0 {
		return nil
	}
	path := fieldPath(bytes.Split(pointer[1:], []byte("/")))
	for i, key := range path {
		if bytes.IndexByte(key, '~') >= 0 {
			path[i] = []byte(unescape.Replace(string(key)))
		}
	}
	return path
}

// unescape gives a key of its segment of a JSON pointer.
var unescape = strings.NewReplacer("~1", "/", "~0", "~")

// appendChanged goes into objects that a patch replaces whole because they are small.
func appendChanged(paths []fieldPath, path fieldPath, was, is patch.Doc) []fieldPath {
	if !isObject(was) || !isObject(is) {
		return append(paths, path)
	}
	left := map[string]patch.Doc{}
	for key, value := range patch.Members(was) {
		left[string(key)] = value
	}
	for key, value := range patch.Members(is) {
		if old := left[string(key)]; !bytes.Equal(old, value) {
			paths = appendChanged(paths, append(slices.Clone(path), key), old, value)
		}
		delete(left, string(key))
	}
	for key := range left { // removed
		paths = append(paths, append(slices.Clone(path), []byte(key)))
	}
	return paths
}

func isObject(value patch.Doc) bool { return len(value) > 0 && value[0] == '{' }

// notWritten is the metadata that the server changes by itself.
var notWritten = []string{"managedFields", "resourceVersion", "generation"}

// fields counts what a set of fields, in the form of FieldsV1, holds.
func fields(set patch.Doc) (n int) {
	for _, below := range patch.Members(set) {
		n += 1 + fields(below)
	}
	return n
}

// A fieldSet is a set of fields, in the form of FieldsV1, or several of which any will
// do. It is read once, and only as deep as was asked. Nil owns nothing.
type fieldSet struct {
	unread   []patch.Doc          // objects that are not empty
	whole    bool                 // and all below
	fields   map[string]*fieldSet // by key
	elements *fieldSet            // those of a list, nil if there are none
}

// with gives the set with a text, which is no set if it is not an object.
func (s *fieldSet) with(text patch.Doc) *fieldSet {
	if !isObject(text) {
		return s
	}
	if s == nil {
		s = new(fieldSet)
	}
	if len(text) == len("{}") {
		s.whole = true
	} else {
		s.unread = append(s.unread, text)
	}
	return s
}

// owns reports whether the set holds a path or something below it. Which element of a
// list a position is, the path does not say: any will do.
func (s *fieldSet) owns(path fieldPath) bool {
	if s == nil || s.whole || len(path) == 0 {
		return s != nil
	}
	s.read()
	if below, ok := s.fields[string(path[0])]; ok {
		return below.owns(path[1:])
	}
	return s.elements.owns(path[1:])
}

func (s *fieldSet) read() {
	for _, text := range s.unread {
		for key, below := range patch.Members(text) {
			s.add(key, below)
		}
	}
	s.unread = nil
}

func (s *fieldSet) add(key []byte, below patch.Doc) {
	switch kind, field, _ := bytes.Cut(key, []byte(":")); string(kind) {
	case "f":
		if s.fields == nil {
			s.fields = map[string]*fieldSet{}
		}
		s.fields[string(field)] = s.fields[string(field)].with(below)
	case "k", "v":
		s.elements = s.elements.with(below)
	}
}
