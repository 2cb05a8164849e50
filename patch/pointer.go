package patch

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
)

// ErrNotFound is wrapped by errors about a pointer that does not exist in a document.
var ErrNotFound = errors.New("path not found")

// Get returns the value at a pointer of RFC 6901, or false if there is none. The result shares the memory of doc.
func Get(doc Doc, pointer string) (Doc, bool) {
	start, end, err := locate(doc, pointer)
	if err != nil {
		return nil, false
	}
	return doc[start:end:end], true
}

// Set returns doc with the value at a pointer replaced. The error wraps ErrNotFound if there is no value to replace.
func Set(doc Doc, pointer string, value Doc) (Doc, error) {
	start, end, err := locate(doc, pointer)
	if err != nil {
		return nil, err
	}
	if len(value) == 0 {
		return nil, fmt.Errorf("patch: set %q: the new value is empty", pointer)
	}
	out := make(Doc, 0, len(doc)-(end-start)+len(value))
	return append(append(append(out, doc[:start]...), value...), doc[end:]...), nil
}

// locate returns where the text of the value at a pointer begins and ends.
func locate(doc Doc, pointer string) (start, end int, err error) {
	tokens, err := splitPointer(pointer)
	if err != nil {
		return 0, 0, err
	}
	for _, token := range tokens {
		if start = child(doc, start, token); start < 0 {
			return 0, 0, fmt.Errorf("patch: %q: %w", pointer, ErrNotFound)
		}
	}
	if end = skipValue(doc, start); end < 0 {
		return 0, 0, fmt.Errorf("patch: %q: %w", pointer, errNotCanonical)
	}
	return start, end, nil
}

// splitPointer returns the unescaped reference tokens of a pointer.
func splitPointer(pointer string) ([]string, error) {
	if pointer == "" {
		return nil, nil
	}
	if pointer[0] != '/' {
		return nil, fmt.Errorf("patch: pointer %q does not begin with /", pointer)
	}
	tokens := strings.Split(pointer[1:], "/")
	for i, token := range tokens {
		plain, ok := unescapeToken([]byte(token))
		if !ok {
			return nil, fmt.Errorf("patch: pointer %q has a ~ that is not ~0 or ~1", pointer)
		}
		tokens[i] = string(plain)
	}
	return tokens, nil
}

// unescapeToken turns ~0 into ~ and ~1 into /. It returns false for any other use of ~.
func unescapeToken(token []byte) ([]byte, bool) {
	if bytes.IndexByte(token, '~') < 0 {
		return token, true
	}
	plain := make([]byte, 0, len(token))
	for i := 0; i < len(token); i++ {
		c := token[i]
		if c == '~' {
			if i++; i == len(token) || token[i] != '0' && token[i] != '1' {
				return nil, false
			}
			c = "~/"[token[i]-'0']
		}
		plain = append(plain, c)
	}
	return plain, true
}

// appendToken appends a reference token with its slash, escaped.
func appendToken(dst, token []byte) []byte {
	dst = append(dst, '/')
	for _, c := range token {
		switch c {
		case '~':
			dst = append(dst, '~', '0')
		case '/':
			dst = append(dst, '~', '1')
		default:
			dst = append(dst, c)
		}
	}
	return dst
}

// arrayIndex reads a token as an index of RFC 6901: digits without a leading zero. No text is long enough for an index
// of ten digits.
func arrayIndex[T ~string | ~[]byte](token T) (int, bool) {
	if len(token) == 0 || len(token) > 9 || len(token) > 1 && token[0] == '0' {
		return 0, false
	}
	index := 0
	for i := range len(token) {
		if !isDigit(token[i]) {
			return 0, false
		}
		index = index*10 + int(token[i]-'0')
	}
	return index, true
}

// child returns the position of the member or element that token names in the container at pos, or -1.
func child(doc Doc, pos int, token string) int {
	index, isIndex := arrayIndex(token)
	c := cursor{doc: doc, pos: pos}
	for n := 0; c.next(); n++ {
		if c.key == nil && isIndex && n == index || c.key != nil && keyMeans(c.key, token) {
			return c.value
		}
	}
	return -1
}

// keyMeans reports whether the text of a key, between its quotes, spells token.
func keyMeans(key []byte, token string) bool {
	if plainEnd(key, 0) == len(key) {
		return string(key) == token
	}
	return string(appendDecoded(make([]byte, 0, len(key)), key)) == token
}

// A cursor steps through the members or elements of one container of a Doc. It never reads beyond the text, even if the
// text is no Doc.
type cursor struct {
	doc   Doc
	pos   int    // at first of the container's bracket, then after the value
	key   []byte // text of the member's key between its quotes; nil in an array
	value int    // position of the value
	end   int    // position after the value
	began bool
	close byte
}

// next moves to the next value. It returns false after the last value, and if there is no container.
func (c *cursor) next() bool {
	if !c.begin() || c.pos >= len(c.doc) || c.doc[c.pos] == c.close {
		return false
	}
	if c.value = c.pos; c.close == '}' && !c.readKey() {
		return false
	}
	if c.end = skipValue(c.doc, c.value); c.end < 0 {
		return false
	}
	if c.pos = c.end; c.pos < len(c.doc) && c.doc[c.pos] == ',' {
		c.pos++
	}
	return true
}

// begin enters the container on the first call.
func (c *cursor) begin() bool {
	if c.began {
		return true
	}
	if c.pos >= len(c.doc) || c.doc[c.pos] != '{' && c.doc[c.pos] != '[' {
		return false
	}
	c.close = c.doc[c.pos] + 2 // In ASCII the closing bracket is the second after the opening one.
	c.began = true
	c.pos++
	return true
}

func (c *cursor) readKey() bool {
	if c.doc[c.pos] != '"' {
		return false
	}
	end := skipString(c.doc, c.pos)
	if end < 0 || end >= len(c.doc) || c.doc[end] != ':' {
		return false
	}
	c.key, c.value = c.doc[c.pos+1:end-1], end+1
	return true
}

// skipString returns the position after the string at pos, or -1.
func skipString(text []byte, pos int) int {
	for i := pos + 1; ; i += 2 {
		for i = plainEnd(text, i); i < len(text) && text[i] < ' '; {
			i = plainEnd(text, i+1)
		}
		if i >= len(text) {
			return -1
		}
		if text[i] == '"' {
			return i + 1
		}
	}
}

// skipValue returns the position after the value at pos, or -1 if the text ends within it.
func skipValue(text []byte, pos int) int {
	for depth, i := 0, pos; i < len(text); {
		switch text[i] {
		case '"':
			if i = skipString(text, i); i < 0 {
				return -1
			}
		case '{', '[':
			i, depth = i+1, depth+1
			continue
		case '}', ']':
			i, depth = i+1, depth-1
		case ',', ':':
			i++
			continue
		default:
			i = scalarEnd(text, i)
		}
		if depth <= 0 {
			return i
		}
	}
	return -1
}

// scalarEnd returns the position after the number or literal at i, which takes at least one byte.
func scalarEnd(text []byte, i int) int {
	for i++; i < len(text); i++ {
		switch text[i] {
		case ',', ':', '}', ']', '{', '[', '"':
			return i
		}
	}
	return i
}
