package nearby

import (
	"strings"

	"github.com/kuberewind/kuberewind/patch"
)

// words are the names of objects that appear in the texts of another object.
type words map[string]bool

// read adds the names that appear in a document, except in bookkeeping. It keeps only names of objects, because other texts
// may be long.
func (w words) read(doc patch.Doc, names words) {
	if len(doc) == 0 {
		return
	}
	if plain, ok := patch.Unquote(doc); ok {
		w.add(string(plain), names)
		return
	}
	for key, value := range patch.Members(doc) {
		if k := string(key); k != "managedFields" && k != "kubectl.kubernetes.io/last-applied-configuration" {
			w.read(value, names)
		}
	}
}

// readMessages adds the names in messages.
func (w words) readMessages(doc patch.Doc, names words) {
	for key, value := range patch.Members(doc) {
		if string(key) == "message" {
			w.read(value, names)
			continue
		}
		w.readMessages(value, names)
	}
}

// add splits a text at every character that no name contains.
func (w words) add(text string, names words) {
	for part := range strings.FieldsFuncSeq(text, apart) {
		if part = strings.Trim(part, ".-"); names[part] {
			w[part] = true
		}
	}
}

func apart(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '.'
}

// any returns a word that both sets have, or "".
func (w words) any(others words) string {
	for word := range others {
		if w[word] {
			return word
		}
	}
	return ""
}

// anyOf is any for the keys of a map.
func (w words) anyOf(others map[string]string) (found string) {
	for word := range others {
		if w[word] && (found == "" || word < found) {
			found = word
		}
	}
	return found
}

func at(doc patch.Doc, pointer string) patch.Doc {
	value, ok := patch.Get(doc, pointer)
	if !ok {
		return patch.Doc("null")
	}
	return value
}

func text(doc patch.Doc, pointer string) string {
	plain, _ := patch.Unquote(at(doc, pointer))
	return string(plain)
}
