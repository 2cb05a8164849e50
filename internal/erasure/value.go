package erasure

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/kuberewind/kuberewind/patch"
)

// leastValue is how many bytes a value has at least: a shorter one stands everywhere by chance.
const leastValue = 6

// leastRun is how many bytes in a row no form of writing may change: they are what the database is asked for.
const leastRun = 4

// ErrValue says that a value cannot be looked for.
var ErrValue = errors.New("the value cannot be erased")

// identity is where an object says which it is: the record could not be read without.
var identity = []string{"/apiVersion", "/kind", "/metadata/name", "/metadata/namespace", "/metadata/uid", "/metadata/resourceVersion"}

// A value is what is to go, in the forms in which objects hold it.
type value struct {
	forms  [][]byte // longest first
	runs   [][]byte // one of each form's: text that holds the form holds the run, however it is escaped
	marker []byte   // nil while nothing is to be replaced
	keyed  func(text []byte) []byte
	paths  []patch.Path // empty for everywhere
}

// newValue takes a value in three forms: as it is, in JSON inside of a string (last-applied-configuration), and in base64
// (Secrets). A base64 form also covers the line end that a file or echo added.
func newValue(text []byte, keyed func([]byte) []byte, paths []patch.Path) (*value, error) {
	if len(text) < leastValue {
		return nil, fmt.Errorf("%w: it has less than %d bytes, and would be found by chance", ErrValue, leastValue)
	}
	if !utf8.Valid(text) {
		return nil, fmt.Errorf("%w: it is not UTF-8, and no object holds it as it is; give the base64 text of it", ErrValue)
	}
	for _, place := range identity {
		for _, member := range strings.Split(place, "/") {
			if bytes.Contains([]byte(member), text) {
				return nil, fmt.Errorf("%w: it is part of the word %q, which each object has", ErrValue, member)
			}
		}
	}
	if bytes.Contains(markerOf(0), text) {
		return nil, fmt.Errorf("%w: it is part of what would stand in its place", ErrValue)
	}
	html, err := json.Marshal(string(text))
	if err != nil {
		return nil, err
	}
	quoted := patch.Quote(text)
	v := &value{paths: paths, keyed: keyed}
	forms := [][]byte{text, quoted[1 : len(quoted)-1], html[1 : len(html)-1]}
	for _, end := range []string{"", "\n", "\r\n"} {
		forms = append(forms, []byte(base64.StdEncoding.EncodeToString(slices.Concat(text, []byte(end)))))
	}
	for _, form := range forms {
		if slices.ContainsFunc(v.forms, func(f []byte) bool { return bytes.Equal(f, form) }) {
			continue
		}
		run := longestRun(form)
		if len(run) < leastRun {
			return nil, fmt.Errorf("%w: no %d bytes in a row of it are written in one way only; erase the parts of it", ErrValue, leastRun)
		}
		v.forms, v.runs = append(v.forms, form), append(v.runs, run)
	}
	slices.SortFunc(v.forms, func(a, b []byte) int { return len(b) - len(a) })
	return v, nil
}

// markerOf is what stands where the value was.
func markerOf(erasure int64) []byte { return fmt.Appendf(nil, "[erased %d]", erasure) }

// longestRun gives the longest part that neither JSON, nor JSON for HTML, nor a JSON pointer escapes.
func longestRun(form []byte) []byte {
	var longest []byte
	for _, part := range bytes.FieldsFunc(form, func(c rune) bool {
		return c < ' ' || c == 0x7f || c == 0x2028 || c == 0x2029 || strings.ContainsRune("\"\\/~<>&", c)
	}) {
		if len(part) > len(longest) {
			longest = part
		}
	}
	return longest
}

// in reports whether a text holds the value, in any form.
func (v *value) in(text string) bool {
	return slices.ContainsFunc(v.forms, func(form []byte) bool { return strings.Contains(text, string(form)) })
}

// suspected reports whether a text may hold the value.
func (v *value) suspected(text []byte) bool {
	return slices.ContainsFunc(v.runs, func(run []byte) bool { return bytes.Contains(text, run) })
}

// erased gives a document without the value. An object's identity stays.
func (v *value) erased(doc patch.Doc) (patch.Doc, error) {
	if doc == nil || !v.suspected(doc) {
		return doc, nil
	}
	out, err := v.within(doc)
	if err != nil || bytes.Equal(out, doc) {
		return doc, err
	}
	for _, place := range identity {
		if was, ok := patch.Get(doc, place); ok {
			if out, err = patch.Set(out, place, was); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

func (v *value) within(doc patch.Doc) (patch.Doc, error) {
	if len(v.paths) == 0 {
		return v.everywhere(doc)
	}
	return patch.Rewrite(doc, v.paths, func(_ string, at patch.Doc) (patch.Doc, error) { return v.everywhere(at) })
}

// everywhere replaces the value in each string, and in the names of members.
func (v *value) everywhere(doc patch.Doc) (patch.Doc, error) {
	var out []byte
	copied := 0
	for i := 0; i < len(doc); i++ {
		if doc[i] != '"' {
			continue
		}
		begin := i
		for i++; doc[i] != '"'; i++ {
			if doc[i] == '\\' {
				i++
			}
		}
		end := i + 1
		name := end < len(doc) && doc[end] == ':'
		if text, changed := v.text(doc[begin:end], name); changed {
			out = append(append(out, doc[copied:begin]...), text...)
			copied = end
		}
	}
	if out == nil {
		return doc, nil
	}
	// Members may be in another order now.
	return patch.Canonical(append(out, doc[copied:]...))
}

// text replaces the value in one string. Names of members get a keyed hash of what they were beside it: two of one object stay two.
func (v *value) text(quoted patch.Doc, name bool) (out patch.Doc, changed bool) {
	text, ok := patch.Unquote(quoted)
	if !ok || !v.suspected(text) {
		return nil, false
	}
	marker := v.marker
	if name {
		marker = append(append(bytes.TrimSuffix(slices.Clone(marker), []byte("]")), ' '), hex.EncodeToString(v.keyed(text)[:4])+"]"...)
	}
	replaced := text
	for _, form := range v.forms {
		replaced = bytes.ReplaceAll(replaced, form, marker)
	}
	if bytes.Equal(replaced, text) {
		return nil, false
	}
	if !utf8.Valid(text) {
		// Lone surrogates have no UTF-8: the string goes whole.
		replaced = marker
	}
	return patch.Quote(replaced), true
}

// operations erases from a patch whose base is not on record any more.
func (v *value) operations(text []byte) ([]byte, error) {
	var operations []map[string]json.RawMessage
	if err := json.Unmarshal(text, &operations); err != nil {
		return nil, err
	}
	for _, o := range operations {
		for member, raw := range o {
			canonical, err := patch.Canonical(raw)
			if err == nil && (member == "path" || member == "from") {
				canonical = v.pointer(canonical)
			} else if err == nil {
				canonical, err = v.everywhere(canonical)
			}
			if err != nil {
				return nil, err
			}
			o[member] = json.RawMessage(canonical)
		}
	}
	out, err := json.Marshal(operations)
	if err != nil {
		return nil, err
	}
	return patch.Canonical(out)
}

// The value of a token of a JSON pointer, and its spelling.
var (
	pointerPlain   = strings.NewReplacer("~1", "/", "~0", "~")
	pointerEscaped = strings.NewReplacer("~", "~0", "/", "~1")
)

// pointer erases from the tokens of a JSON pointer, which are names of members.
func (v *value) pointer(quoted patch.Doc) patch.Doc {
	text, _ := patch.Unquote(quoted)
	tokens := strings.Split(string(text), "/")
	for i, token := range tokens {
		plain := pointerPlain.Replace(token)
		if out, changed := v.text(patch.Quote([]byte(plain)), true); changed {
			plain, _ := patch.Unquote(out)
			tokens[i] = pointerEscaped.Replace(string(plain))
		}
	}
	return patch.Quote([]byte(strings.Join(tokens, "/")))
}
