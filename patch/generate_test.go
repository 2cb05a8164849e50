package patch_test

import (
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// The values of the properties. A tree is nil, bool, number, text, []tree or object. It is the meaning of a JSON text;
// spell writes it in any of the ways that JSON allows.
type (
	tree   any
	object map[text]tree
	number string // any valid spelling
	text   string // JSON string without quotes, with every unusual character escaped: one spelling per meaning
)

// dialect bounds the generated values.
type dialect struct {
	foreign bool // only values that encoding/json and evanphx/json-patch represent as the RFCs say
}

func (d dialect) tree(t *rapid.T, depth int) tree {
	kinds := 6
	if depth == 0 {
		kinds = 4
	}
	switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
	case 0:
		return nil
	case 1:
		return rapid.Bool().Draw(t, "bool")
	case 2:
		return d.number(t)
	case 3:
		return d.text(t)
	case 4:
		return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) tree { return d.tree(t, depth-1) }), 0, 6).Draw(t, "array")
	default:
		return d.object(t, depth)
	}
}

// container returns a tree whose root is an array or an object.
func (d dialect) container(t *rapid.T, depth int) tree {
	if rapid.Bool().Draw(t, "array") {
		return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) tree { return d.tree(t, depth-1) }), 0, 6).Draw(t, "elements")
	}
	return d.object(t, depth)
}

func (d dialect) object(t *rapid.T, depth int) object {
	o := object{}
	for range rapid.IntRange(0, 7).Draw(t, "members") {
		o[d.key(t)] = d.tree(t, depth-1)
	}
	return o
}

var keys = []text{
	"a", "b", "name", "type", "uid", "key", "manager", "a/b", "m~n", "~1", "/", "~", "0", "1", "-", "*", "metadata", "metadatas",
	"\\\"", "\\\\", "é", "🙂", "\\n", "\\u0000", "f:a", `k:{\"name\":\"x\"}`,
}

var oddKeys = []text{"", "01", "\\ud800", "\\udfff", "\xff", "\xed\xa0\x80"}

func (d dialect) key(t *rapid.T) text {
	if d.foreign {
		return rapid.SampledFrom(keys).Draw(t, "key")
	}
	return rapid.SampledFrom(slices.Concat(keys, oddKeys)).Draw(t, "key")
}

var pieces = []text{
	"a", "z", " ", "/", "~", "<", "\u007f", "é", "\u2028", "🙂", "\uffff", "\\\"", "\\\\", "\\b", "\\f", "\\n", "\\r", "\\t", "\\u0000", "\\u001f",
	"a longer run without anything special",
}

var oddPieces = []text{"\\ud83d.", "\\ude00", "\\udfff\\ud800.", "\xff", "\xc3", "\xed\xa0\x80"}

func (d dialect) text(t *rapid.T) text {
	choices := pieces
	if !d.foreign {
		choices = slices.Concat(pieces, oddPieces)
	}
	var s text
	for _, piece := range rapid.SliceOfN(rapid.SampledFrom(choices), 0, 5).Draw(t, "text") {
		s += piece
	}
	return s
}

func (d dialect) number(t *rapid.T) number {
	return number(rapid.OneOf(
		rapid.SampledFrom([]string{
			"0", "-0", "1", "-1", "3.50", "0.1", "-0.0e7", "9007199254740993", "-9223372036854775809", "123456789012345678901234567890.5",
			"1e3", "1E+3", "10e2", "1000", "1e-3", "0.001", "1.0", "1e399", "1e400", "12e399", "1e-399", "1e-400", "1e99999999999999999999",
			"10e99999999999999999998", "-2.5E-99999999999999999999", "1e4611686018427387904", "0e99999999999999999999",
		}),
		rapid.StringMatching(`-?(0|[1-9][0-9]{0,3})(\.[0-9]{1,3})?([eE][+-]?[0-9]{1,2})?`),
	).Draw(t, "number"))
}

// value returns the number as an integer without trailing zeros and a power of ten: one form for each value. It uses
// big fractions and not the code under test.
func (n number) value() string {
	mantissa, exponent, _ := strings.Cut(strings.ToLower(string(n))+"e0", "e")
	exponent, _, _ = strings.Cut(strings.TrimPrefix(exponent, "+"), "e")
	m, _ := new(big.Rat).SetString(mantissa)
	e, _ := new(big.Int).SetString(exponent, 10)
	if m.Sign() == 0 {
		return "0"
	}
	one, ten := big.NewInt(1), big.NewRat(10, 1)
	for ; m.IsInt() && new(big.Int).Rem(m.Num(), ten.Num()).Sign() == 0; e.Add(e, one) {
		m.Quo(m, ten)
	}
	for ; !m.IsInt(); e.Sub(e, one) {
		m.Mul(m, ten)
	}
	return m.Num().String() + "e" + e.String()
}

// meaning returns equal texts for two trees if and only if they are the same value.
func meaning(v tree) string {
	switch v := v.(type) {
	case number:
		return v.value()
	case text:
		return `"` + string(v) + `"`
	case []tree:
		var b strings.Builder
		for _, e := range v {
			b.WriteString(meaning(e) + ";")
		}
		return "[" + b.String() + "]"
	case object:
		var b strings.Builder
		for _, k := range slices.Sorted(maps.Keys(v)) {
			b.WriteString(`"` + string(k) + `":` + meaning(v[k]) + ";")
		}
		return "{" + b.String() + "}"
	}
	return fmt.Sprint(v)
}

// spell writes a tree with random white space, escapes, order and repetition of members.
func spell(t *rapid.T, v tree) string {
	space := rapid.SampledFrom([]string{"", "", "", " ", "\n\t", "\r\n  "})
	s := func() string { return space.Draw(t, "space") }
	switch v := v.(type) {
	case nil:
		return s() + "null" + s()
	case number:
		return s() + string(v) + s()
	case text:
		return s() + spellText(t, v) + s()
	case []tree:
		parts := make([]string, len(v))
		for i, e := range v {
			parts[i] = spell(t, e)
		}
		return s() + "[" + s() + strings.Join(parts, ",") + "]" + s()
	case object:
		return s() + "{" + s() + strings.Join(spellMembers(t, v, s), ",") + "}" + s()
	}
	return s() + fmt.Sprint(v) + s()
}

func spellMembers(t *rapid.T, o object, s func() string) []string {
	var parts []string
	for _, k := range rapid.Permutation(slices.Sorted(maps.Keys(o))).Draw(t, "order") {
		if rapid.IntRange(0, 9).Draw(t, "repeat") == 0 {
			parts = append([]string{s() + spellText(t, k) + s() + `:"an earlier one"`}, parts...)
		}
		parts = append(parts, s()+spellText(t, k)+s()+":"+spell(t, o[k]))
	}
	return parts
}

// spellText spells each character of a text raw, or as an escape of any kind.
func spellText(t *rapid.T, s text) string {
	var b strings.Builder
	for rest := string(s); rest != ""; {
		c, size := utf8.DecodeRuneInString(rest)
		escaped := rapid.IntRange(0, 5).Draw(t, "escape") == 0
		switch {
		case c == '\\' && rest[1] == 'u':
			size = 6
			b.WriteString(respellHex(escaped, rest[:6]))
		case c == '\\':
			size = 2
			b.WriteString(rest[:2])
		case c == '/' && escaped:
			b.WriteString(`\/`)
		case c == utf8.RuneError && size == 1, !escaped:
			b.WriteString(rest[:size])
		case c > 0xffff:
			c -= 0x10000
			fmt.Fprintf(&b, `\u%04X\u%04x`, 0xd800+c>>10, 0xdc00+c&0x3ff)
		default:
			fmt.Fprintf(&b, `\u%04X`, c)
		}
		rest = rest[size:]
	}
	return `"` + b.String() + `"`
}

func respellHex(upper bool, escape string) string {
	if upper {
		return `\u` + strings.ToUpper(escape[2:])
	}
	return escape
}

// mutate changes a tree in one to five places: it adds, removes, moves and changes members and elements.
func (d dialect) mutate(t *rapid.T, v tree) tree {
	for range rapid.IntRange(1, 5).Draw(t, "changes") {
		v = d.mutateOnce(t, v)
	}
	return v
}

func (d dialect) mutateOnce(t *rapid.T, v tree) tree {
	switch v := v.(type) {
	case []tree:
		return d.mutateArray(t, slices.Clone(v))
	case object:
		return d.mutateObject(t, maps.Clone(v))
	}
	return d.tree(t, 1)
}

func (d dialect) mutateArray(t *rapid.T, v []tree) tree {
	at := rapid.IntRange(0, len(v)).Draw(t, "at")
	if at == len(v) {
		return append(v, d.tree(t, 1))
	}
	switch rapid.IntRange(0, 4).Draw(t, "change") {
	case 0:
		return slices.Insert(v, at, d.tree(t, 1))
	case 1:
		return slices.Delete(v, at, at+1)
	case 2:
		moved := v[at]
		return append(slices.Delete(v, at, at+1), moved)
	default:
		v[at] = d.mutateOnce(t, v[at])
	}
	return v
}

func (d dialect) mutateObject(t *rapid.T, v object) tree {
	if len(v) == 0 || rapid.IntRange(0, 3).Draw(t, "change") == 0 {
		v[d.key(t)] = d.tree(t, 1)
		return v
	}
	key := rapid.SampledFrom(slices.Sorted(maps.Keys(v))).Draw(t, "member")
	if rapid.IntRange(0, 3).Draw(t, "remove") == 0 {
		delete(v, key)
		return v
	}
	v[key] = d.mutateOnce(t, v[key])
	return v
}
