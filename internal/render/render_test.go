package render_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/kuberewind/kuberewind/internal/render"
)

// awkward returns the characters that writers and readers of YAML treat differently, and characters that control a terminal.
func awkward() []rune {
	var all []rune
	for r := rune(0); r <= 0xA0; r++ {
		all = append(all, r)
	}
	return append(all, 0xAD, 0x061C, 0x200D, 0x200E, 0x2028, 0x2029, 0x202E, 0x2066, 0x2069, 0xD7FF, 0xE000, 0xFEFF, 0xFFFD, 0xFFFE, 0xFFFF, 0x1F600, 0x1FFFE, 0xE0001, 0x10FFFF)
}

// shapes put the character X in places that matter to a writer of YAML.
var shapes = []string{"X", "aXb", "Xa", "aX", "a\nXb\n", "aX\nb", "X\n", "\nX", " X", "X ", "a X b", "aXXb", "a\nX b\n\n", "# X", "X: b", "- X", "true X", "a:X", "aX#",
	strings.Repeat("long words X ", 20), strings.Repeat("k", 1100) + "X"}

func TestYAMLWithAnyCharacterReadsBackAsTheSameValue(t *testing.T) {
	for _, r := range awkward() {
		for _, shape := range shapes {
			text := strings.ReplaceAll(shape, "X", string(r))
			doc := marshal(t, map[string]any{"value": map[string]any{"v": text}, "key": map[string]any{text: "v"}, "list": []any{text, map[string]any{text: text}}})
			requireSame(t, doc)
			require.Empty(t, render.Replaced(doc), "%U in %q", r, shape)
		}
	}
}

func TestYAMLWithAnyMemberReadsBackAsTheSameValue(t *testing.T) {
	for _, doc := range []string{
		`{"spec":{"<<":{"a":1},"b":2}}`, `{"spec":{"a":{"<<":"<<"}}}`, `{"spec":["<<",{"<<":null}]}`, `{"kuberewind-quotes-0-":"\u202e","\u202e":"kuberewind-quotes-0-"}`,
		`{"yes":true,"no":null,"1":1,"1.5":"1.5","0x10":"010","2026-01-01":"2026-01-01","~":"~","":"","=":"=","null":"null"}`,
		`{"a":-9223372036854775808,"b":18446744073709551615,"c":0.1,"d":1.5e-9,"e":-0,"f":1e21}`, `[]`, `{}`, `{"a":[],"b":{}}`, `"\u0085"`,
		strings.Repeat(`{"a":[`, 2000) + strings.Repeat(`]}`, 2000),
	} {
		requireSame(t, []byte(doc))
	}
}

func requireSame(t *testing.T, doc []byte) {
	t.Helper()
	text, err := render.YAML(doc)
	require.NoError(t, err, "%.200q", doc)
	back, err := yaml.YAMLToJSON(text)
	require.NoError(t, err, "%.200q", text)
	require.Equal(t, value(t, doc), value(t, back), "%.200q", text)
	require.Falsef(t, strings.ContainsFunc(string(text), func(r rune) bool {
		return r != '\n' && unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp, unicode.Bidi_Control)
	}), "%.200q", text)
}

func value(t *testing.T, doc []byte) any {
	t.Helper()
	var v any
	require.NoError(t, json.Unmarshal(doc, &v), "%.200q", doc)
	return v
}

func marshal(t *testing.T, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	require.NoError(t, err)
	return text
}

func TestYAMLEqualsTheYAMLOfKubectl(t *testing.T) {
	for _, doc := range []string{
		`{"kind":"Pod","metadata":{"labels":{"b":"on","a":"1"},"name":"x"},"spec":{"containers":[{"args":["-c","echo a: b # c\nnext\n"],"ports":[]}],"n":null,"t":true,"z":{}}}`,
		`{"data":{"cert":"` + strings.Repeat(`AAAA\n`, 30) + `","tab":"a\tb","long":"` + strings.Repeat("words ", 60) + `","é":"ü€","at":"2026-01-31T00:00:00Z"}}`,
		`{"a":1.5,"b":1e3,"c":100000000000000000000,"d":1e-7,"e":9007199254740993,"f":123456789012345678901234567890.5}`,
	} {
		want, err := yaml.JSONToYAML([]byte(doc))
		require.NoError(t, err)
		got, err := render.YAML([]byte(doc))
		require.NoError(t, err)
		require.Equal(t, string(want), string(got))
	}
}

func TestYAMLReplacesALoneSurrogateAndNamesItsPlace(t *testing.T) {
	doc := []byte(`{"data":{"high":"a\ud800b","low":"\udfff","pair":"\ud83d\ude00","bytes":"a` + "\xff" + `b","k\udc00":"v","backslash":"\\ud800"},"items":["\uD800\uD800"]}`)
	text, err := render.YAML(doc)
	require.NoError(t, err)
	back, err := yaml.YAMLToJSON(text)
	require.NoError(t, err)
	require.Equal(t, map[string]any{
		"data":  map[string]any{"high": "a\uFFFDb", "low": "\uFFFD", "pair": "😀", "bytes": "a\uFFFDb", "k\uFFFD": "v", "backslash": `\ud800`},
		"items": []any{"\uFFFD\uFFFD"},
	}, value(t, back))
	require.Equal(t, []string{"/data/high", "/data/low", "/data/bytes", "/data/k\uFFFD", "/items/0"}, render.Replaced(doc))
}

func TestTheErrorOfAValueThatYAMLCannotHoldNamesItsPlace(t *testing.T) {
	_, err := render.YAML([]byte(`{"spec":{"\ud800":1,"\ud801":2}}`))
	require.ErrorContains(t, err, "/spec/\uFFFD exists twice")
	_, err = render.YAML([]byte(`{"spec":{"n":[1e400]}}`))
	require.ErrorContains(t, err, "the number at /spec/n/0 is too large for YAML: 1e400")
	_, err = render.YAML([]byte(`{"spec":`))
	require.Error(t, err)
}

func TestJSONKeepsTheValueAndControlsNoTerminal(t *testing.T) {
	for _, r := range awkward() {
		doc := []byte(fmt.Sprintf("{\n  %q: \"a\xff\"\n}", "k"))
		doc = append(doc[:len(doc)-1], marshal(t, map[string]any{"v": "a" + string(r) + "b", "k" + string(r): 1})...)
		doc = []byte(`[` + strings.Replace(string(doc), "\n{", "\n},{", 1) + `]`)
		text := render.JSON(doc)
		require.Equal(t, value(t, doc), value(t, text), "%U", r)
		require.Falsef(t, strings.ContainsFunc(string(text), func(r rune) bool { return r != '\n' && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) }), "%q", text)
	}
	plain := []byte(`{"a":"é😀"}`)
	require.Equal(t, plain, render.JSON(plain))
}

func TestLineEscapesUnprintableCharacters(t *testing.T) {
	require.Equal(t, `a\u001b[31m\u000a\u009b\u202e é`, render.Line("a\x1b[31m\n\u009b\u202e é"))
	require.Equal(t, "a\x1b\n"+`\u0007\u202e`, render.Cell("a\x1b\n\x07\u202e"))
	require.Equal(t, "a\n\tb"+`\u001b\u000d`, render.Terminal("a\n\tb\x1b\r"))
}

func TestShortCutsTheMiddleOfALongLine(t *testing.T) {
	text := "unknown command " + strings.Repeat("x", 100_000) + "\nSee 'replay --help' for usage"
	short := render.Short(text)
	require.Less(t, len(short), 4000)
	require.Contains(t, short, "unknown command xxx")
	require.Contains(t, short, " bytes … xxx")
	require.Contains(t, short, "\nSee 'replay --help' for usage")
	require.Equal(t, "as it is", render.Short("as it is"))
}
