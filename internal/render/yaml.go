package render

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v2"
)

// YAML converts a JSON document to the YAML of kubectl. kubectl reads the JSON as YAML, which rejects controls and long
// keys, and folds U+0085. YAML reads it as JSON.
func YAML(doc []byte) ([]byte, error) {
	w := newYAMLWriter(doc)
	value, err := w.value()
	if err != nil {
		return nil, err
	}
	text, err := yaml.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("write as YAML: %w", err)
	}
	return w.quote(text), nil
}

// Replaced returns the JSON pointers of the keys and strings of a document in which YAML puts U+FFFD.
func Replaced(doc []byte) []string {
	if utf8.Valid(doc) && !bytes.Contains(bytes.ToLower(doc), []byte(`\ud`)) {
		return nil
	}
	replaced, _ := Check(doc)
	return replaced
}

// Check returns the places that YAML would replace in a document, and the error of YAML.
func Check(doc []byte) (replaced []string, err error) {
	w := newYAMLWriter(doc)
	_, err = w.value()
	return w.replaced, err
}

// yamlWriter builds the Go value that the YAML encoder takes.
type yamlWriter struct {
	decoder  *jsontext.Decoder
	replaced []string
	// The encoder decides which strings it quotes. The writer replaces text that must be quoted with a token, and puts the
	// quoted text back afterwards.
	token  string            // how tokens begin
	tokens map[string]string // by text
}

func newYAMLWriter(doc []byte) *yamlWriter {
	token := "kuberewind-quotes-"
	for bytes.Contains(doc, []byte(token)) {
		token += "x"
	}
	decoder := jsontext.NewDecoder(bytes.NewBuffer(doc), jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
	return &yamlWriter{decoder: decoder, token: token, tokens: map[string]string{}}
}

func (w *yamlWriter) value() (any, error) {
	switch w.decoder.PeekKind() {
	case '{':
		return w.object()
	case '[':
		return w.array()
	case '"':
		return w.text(false)
	default:
		return w.scalar()
	}
}

// scalar reads a number, a boolean or null.
func (w *yamlWriter) scalar() (any, error) {
	value, err := w.decoder.ReadValue()
	if err != nil {
		return nil, err
	}
	switch value.Kind() {
	case 'n':
		return nil, nil
	case 't', 'f':
		return value.Kind() == 't', nil
	default:
		return w.number(string(value))
	}
}

func (w *yamlWriter) object() (any, error) {
	if _, err := w.decoder.ReadToken(); err != nil {
		return nil, err
	}
	members := map[string]any{}
	for w.decoder.PeekKind() != '}' {
		name, err := w.text(true)
		if err != nil {
			return nil, err
		}
		at := w.decoder.StackPointer()
		if _, twice := members[name]; twice {
			return nil, fmt.Errorf("%s exists twice: YAML cannot hold a key twice", Line(string(at)))
		}
		if members[name], err = w.value(); err != nil {
			return nil, err
		}
	}
	_, err := w.decoder.ReadToken()
	return members, err
}

func (w *yamlWriter) array() (any, error) {
	if _, err := w.decoder.ReadToken(); err != nil {
		return nil, err
	}
	elements := []any{}
	for w.decoder.PeekKind() != ']' {
		element, err := w.value()
		if err != nil {
			return nil, err
		}
		elements = append(elements, element)
	}
	_, err := w.decoder.ReadToken()
	return elements, err
}

// text reads a key or a string.
func (w *yamlWriter) text(isKey bool) (string, error) {
	raw, err := w.decoder.ReadValue()
	if err != nil {
		return "", err
	}
	if raw.Kind() != '"' {
		return "", errors.New("a key of an object is not a string")
	}
	plain, err := jsontext.AppendUnquote(nil, raw)
	if err != nil { // the text is not valid Unicode: AppendUnquote writes U+FFFD
		w.replaced = append(w.replaced, Line(strings.ToValidUTF8(string(w.decoder.StackPointer()), "\uFFFD")))
	}
	text := string(plain)
	if isKey && text == "<<" || strings.ContainsFunc(text, misleads) {
		return w.tokenOf(text), nil
	}
	return text, nil
}

// misleads reports whether a character is a bidirectional control or a line separator. Readers treat these differently, and
// they break an indentation.
func misleads(r rune) bool {
	return r > 0x7F && unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp)
}

// tokenOf returns the token for a text. It is as long as the quoted text, because the encoder uses another form for long
// keys.
func (w *yamlWriter) tokenOf(text string) string {
	token, known := w.tokens[text]
	if !known {
		token = fmt.Sprintf("%s%d-", w.token, len(w.tokens))
		token += strings.Repeat("x", max(0, len(quoted(text))-len(token)))
		w.tokens[text] = token
	}
	return token
}

// quote replaces the tokens with the quoted strings.
func (w *yamlWriter) quote(text []byte) []byte {
	if len(w.tokens) == 0 {
		return text
	}
	var pairs []string
	for plain, token := range w.tokens {
		pairs = append(pairs, token, quoted(plain))
	}
	return []byte(strings.NewReplacer(pairs...).Replace(string(text)))
}

// quoted returns a string in YAML's double quotes.
func quoted(text string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case unicode.IsPrint(r):
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, `\U%08X`, r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// number returns a number with the type that a reader of YAML would use.
func (w *yamlWriter) number(text string) (any, error) {
	if i, err := strconv.ParseInt(text, 10, 64); err == nil {
		return i, nil
	}
	if u, err := strconv.ParseUint(text, 10, 64); err == nil {
		return u, nil
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil, fmt.Errorf("the number at %s is too large for YAML: %.40s", Line(string(w.decoder.StackPointer())), text)
	}
	return f, nil
}
