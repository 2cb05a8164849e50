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

// minValue is the minimum length of a value, in bytes. A shorter text occurs in many places by chance.
const minValue = 6

// minRun is the minimum length of the part of a form that no escaping changes, in bytes. The database searches for that part.
const minRun = 4

// ErrValue says that a value cannot be erased.
var ErrValue = errors.New("the value cannot be erased")

// identity lists the fields that identify an object. An erasure does not change them, because the record could not be read without them.
var identity = []string{"/apiVersion", "/kind", "/metadata/name", "/metadata/namespace", "/metadata/uid", "/metadata/resourceVersion"}

// value is the value to erase, in the forms in which objects can hold it.
type value struct {
	forms  [][]byte // longest first
	runs   [][]byte // a part of each form that no escaping changes: a text that holds the form also holds the run
	marker []byte   // the text that replaces the value; nil until it is known
	keyed  func(text []byte) []byte
	paths  []patch.Path // empty for everywhere
}

// newValue returns a value with three forms: the text itself, JSON within a string (last-applied-configuration), and base64 (Secrets). The
// base64 forms also cover a line end that a file or echo has added.
func newValue(text []byte, keyed func([]byte) []byte, paths []patch.Path) (*value, error) {
	if len(text) < minValue {
		return nil, fmt.Errorf("%w: it has less than %d bytes, and would match other texts by chance", ErrValue, minValue)
	}
	if !utf8.Valid(text) {
		return nil, fmt.Errorf("%w: it is not UTF-8, so no object holds it in this form; give its base64 text", ErrValue)
	}
	for _, place := range identity {
		for _, member := range strings.Split(place, "/") {
			if bytes.Contains([]byte(member), text) {
				return nil, fmt.Errorf("%w: it is part of the word %q, which each object has", ErrValue, member)
			}
		}
	}
	if bytes.Contains(markerOf(0), text) {
		return nil, fmt.Errorf("%w: it is part of the text that would be written in its place", ErrValue)
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
		if len(run) < minRun {
			return nil, fmt.Errorf("%w: it has no %d bytes in a row that are written in one way only; erase its parts one by one", ErrValue, minRun)
		}
		v.forms, v.runs = append(v.forms, form), append(v.runs, run)
	}
	slices.SortFunc(v.forms, func(a, b []byte) int { return len(b) - len(a) })
	return v, nil
}

// markerOf returns the text that replaces the value.
func markerOf(erasure int64) []byte { return fmt.Appendf(nil, "[erased %d]", erasure) }

// longestRun returns the longest part of a form that neither JSON, nor JSON for HTML, nor a JSON pointer escapes.
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

// erased returns a document without the value. The identity of the object stays.
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
	// The members may have another order now, because their names have changed.
	return patch.Canonical(append(out, doc[copied:]...))
}

// text replaces the value in one string. In the name of a member, the marker also holds a keyed hash of the old name. So two members of an
// object do not get the same name.
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
		// A lone surrogate has no UTF-8 form, so the whole string is replaced.
		replaced = marker
	}
	return patch.Quote(replaced), true
}

// operations erases the value from a patch whose base is no longer on record.
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

// pointerPlain decodes a token of a JSON pointer, pointerEscaped encodes it.
var (
	pointerPlain   = strings.NewReplacer("~1", "/", "~0", "~")
	pointerEscaped = strings.NewReplacer("~", "~0", "/", "~1")
)

// pointer erases the value from the tokens of a JSON pointer, which are names of members.
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
