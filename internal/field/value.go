package field

import (
	"bytes"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/kuberewind/kuberewind/patch"
)

// Values are compared as canonical text: equal values have equal bytes. So a comparison skips most of two versions without
// parsing. It also loses nothing that a decoder would change, such as large numbers or text that is not UTF-8.

// member is one member of an object, or one element of an array. The key of an element is "".
type member struct {
	key   string
	value patch.Doc
}

func isObject(doc patch.Doc) bool { return len(doc) > 0 && doc[0] == '{' }
func isArray(doc patch.Doc) bool  { return len(doc) > 0 && doc[0] == '[' }

// IsScalar reports whether a value is neither an object nor an array.
func IsScalar(doc patch.Doc) bool { return !isObject(doc) && !isArray(doc) }

// members returns the direct members of an object or array, in the order of the text. It returns nothing for a scalar. The
// values share the memory of doc.
func members(doc patch.Doc) []member {
	if IsScalar(doc) {
		return nil
	}
	named := isObject(doc)
	decoder := jsontext.NewDecoder(bytes.NewBuffer(doc), jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
	if _, err := decoder.ReadToken(); err != nil {
		return nil
	}
	var found []member
	for decoder.PeekKind() != '}' && decoder.PeekKind() != ']' {
		var m member
		if named {
			name, err := decoder.ReadValue()
			if err != nil {
				return found
			}
			m.key = plainText(patch.Doc(name))
		}
		value, err := decoder.ReadValue()
		if err != nil {
			return found
		}
		end := int(decoder.InputOffset())
		m.value = doc[end-len(value) : end : end]
		found = append(found, m)
	}
	return found
}

// plainText returns a string without its quotes, and the JSON text of any other value.
func plainText(value patch.Doc) string {
	if plain, ok := patch.Unquote(value); ok {
		return string(plain)
	}
	return string(value)
}

// Hidden reports whether a value is a keyed hash, which replaces a value that the record does not hold.
func Hidden(value patch.Doc) bool {
	return len(value) > 0 && value[0] == '"' && strings.HasPrefix(plainText(value), "hmac-sha256:")
}
