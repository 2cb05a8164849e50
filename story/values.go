package story

import "github.com/kuberewind/kuberewind/patch"

// text gives the string at a pointer, or "".
func text(doc patch.Doc, pointer string) string {
	value, _ := patch.Get(doc, pointer)
	plain, _ := patch.Unquote(value)
	return string(plain)
}

// number gives the number at a pointer as it is spelt, or "".
func number(doc patch.Doc, pointer string) string {
	value, _ := patch.Get(doc, pointer)
	if len(value) == 0 || value[0] < '0' || value[0] > '9' {
		return ""
	}
	return string(value)
}
