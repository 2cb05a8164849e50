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
	for key, value := range patch.Members(is) {
		if old := member(was, key); !bytes.Equal(old, value) {
			paths = appendChanged(paths, append(slices.Clone(path), key), old, value)
		}
	}
	for key := range patch.Members(was) {
		if member(is, key) == nil {
			paths = append(paths, append(slices.Clone(path), key))
		}
	}
	return paths
}

func isObject(value patch.Doc) bool { return len(value) > 0 && value[0] == '{' }

// member is the value of an object's member, nil if there is none.
func member(object patch.Doc, name []byte) patch.Doc {
	for key, value := range patch.Members(object) {
		if bytes.Equal(key, name) {
			return value
		}
	}
	return nil
}

// notWritten is the metadata that the server changes by itself.
var notWritten = []string{"managedFields", "resourceVersion", "generation"}

// fields counts what a set of fields, in the form of FieldsV1, holds.
func fields(set patch.Doc) (n int) {
	for _, below := range patch.Members(set) {
		n += 1 + fields(below)
	}
	return n
}

// owns reports whether a set of fields holds a path or something below it. Which
// element of a list a position is, the path does not say: any will do.
func owns(set patch.Doc, path fieldPath) bool {
	if !isObject(set) {
		return false
	}
	if len(path) == 0 || len(set) == len("{}") {
		return true
	}
	for key, below := range patch.Members(set) {
		switch kind, field, _ := bytes.Cut(key, []byte(":")); {
		case string(kind) == "f" && bytes.Equal(field, path[0]):
			return owns(below, path[1:])
		case string(kind) == "v", string(kind) == "k" && owns(below, path[1:]):
			return true
		}
	}
	return false
}
