package nearby

import (
	"strings"

	"github.com/kuberewind/kuberewind/patch"
)

// words are the texts of an object, and their parts.
type words map[string]bool

// longest is as long as a name can be.
const longest = 253

// read adds the texts of a document, but for bookkeeping.
func (w words) read(doc patch.Doc) {
	if len(doc) == 0 {
		return
	}
	if plain, ok := patch.Unquote(doc); ok {
		w.add(string(plain))
		return
	}
	for key, value := range patch.Members(doc) {
		if k := string(key); k != "managedFields" && k != "kubectl.kubernetes.io/last-applied-configuration" {
			w.read(value)
		}
	}
}

// readMessages adds what is said in messages.
func (w words) readMessages(doc patch.Doc) {
	for key, value := range patch.Members(doc) {
		if string(key) == "message" {
			w.read(value)
			continue
		}
		w.readMessages(value)
	}
}

// add takes a text apart at all that no name has in it.
func (w words) add(text string) {
	for part := range strings.FieldsFuncSeq(text, apart) {
		if part = strings.Trim(part, ".-"); part != "" && len(part) <= longest {
			w[part] = true
		}
	}
}

func apart(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '.'
}

// any gives a word that is one of others, too, "" if there is none.
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
