package evidence

import (
	"bytes"
	"strings"

	"github.com/kuberewind/kuberewind/patch"
)

// A path holds the keys of FieldsV1 that lead to a field: f:NAME, k:KEYS or v:VALUE. A key of another form owns nothing.
type path []string

// A fieldSet is a set of fields in the form of FieldsV1, or the union of several. It reads the text once, and only as deep
// as needed. Nil owns nothing.
type fieldSet struct {
	unread []patch.Doc // objects that are not empty
	leaf   bool        // a text was empty, or held "."
	below  map[string]*fieldSet
	keys   []string // names of the keys of a list's elements
	values bool     // the elements of a list are their own keys
}

// add adds the fields of a text. A value that is not an object has none.
func (s *fieldSet) add(text patch.Doc) {
	switch {
	case !isObject(text):
	case len(text) == len("{}"):
		s.leaf = true
	default:
		s.unread = append(s.unread, text)
	}
}

func isObject(value patch.Doc) bool { return len(value) > 0 && value[0] == '{' }

func isArray(value patch.Doc) bool { return len(value) > 0 && value[0] == '[' }

// owns reports whether the set contains exactly this path.
func (s *fieldSet) owns(p path) bool {
	for _, key := range p {
		s = s.child(key)
	}
	if s == nil {
		return false
	}
	s.read()
	return s.leaf
}

func (s *fieldSet) child(key string) *fieldSet {
	if s == nil {
		return nil
	}
	s.read()
	return s.below[key]
}

// granular reports whether the set names fields below its root.
func (s *fieldSet) granular() bool {
	if s == nil {
		return false
	}
	s.read()
	return len(s.below) > 0
}

func (s *fieldSet) read() {
	for _, text := range s.unread {
		for key, below := range patch.Members(text) {
			s.put(plain(key), below)
		}
	}
	s.unread = nil
}

// plain returns the key that a JSON text without its quotes spells.
func plain(key []byte) string {
	if bytes.IndexByte(key, '\\') < 0 {
		return string(key)
	}
	return textOf(patch.Doc(`"` + string(key) + `"`))
}

func (s *fieldSet) put(key string, text patch.Doc) {
	if key == "." {
		s.leaf = true
		return
	}
	if s.below == nil {
		s.below = map[string]*fieldSet{}
	}
	if s.below[key] == nil {
		s.below[key] = new(fieldSet)
	}
	s.below[key].add(text)
	if names, ok := strings.CutPrefix(key, "k:"); ok && s.keys == nil {
		for name := range patch.Members(patch.Doc(names)) {
			s.keys = append(s.keys, string(name))
		}
	}
	s.values = s.values || strings.HasPrefix(key, "v:")
}

// element returns the key of an element of a list, "" if it has none.
func (s *fieldSet) element(value patch.Doc) string {
	if s.values {
		return "v:" + string(value)
	}
	if !isObject(value) || len(s.keys) == 0 {
		return ""
	}
	members := map[string]patch.Doc{}
	for key, member := range patch.Members(value) {
		members[string(key)] = member
	}
	var key strings.Builder
	key.WriteString("k:")
	for i, name := range s.keys {
		member, ok := members[name]
		if !ok {
			return ""
		}
		key.WriteString(string("{,"[min(i, 1)]) + `"` + name + `":`)
		key.Write(member)
	}
	key.WriteByte('}')
	return key.String()
}
