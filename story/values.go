package story

import "github.com/kuberewind/kuberewind/patch"

// text returns the string at a pointer, or "".
func text(doc patch.Doc, pointer string) string {
	value, _ := patch.Get(doc, pointer)
	plain, _ := patch.Unquote(value)
	return string(plain)
}

// number returns the number at a pointer as it is written, or "".
func number(doc patch.Doc, pointer string) string {
	value, _ := patch.Get(doc, pointer)
	if len(value) == 0 || value[0] < '0' || value[0] > '9' {
		return ""
	}
	return string(value)
}
