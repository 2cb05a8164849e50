package patch_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kuberewind/kuberewind/patch"
)

func TestCanonicalHasOneSpellingForEachValue(t *testing.T) {
	for name, c := range map[string]struct{ in, out string }{
		"white space is removed":         {" { \"a\" :\r\n[ 1 ,\t2 ] } ", `{"a":[1,2]}`},
		"members are sorted by bytes":    {`{"b":1,"a":2,"é":3,"B":4,"ab":5,"a!":6}`, `{"B":4,"a":2,"a!":6,"ab":5,"b":1,"é":3}`},
		"every level is sorted":          {`[{"b":{"d":1,"c":2},"a":[{"y":1,"x":2}]}]`, `[{"a":[{"x":2,"y":1}],"b":{"c":2,"d":1}}]`},
		"the last of repeated members":   {`{"a":1,"b":2,"\u0061":3}`, `{"a":3,"b":2}`},
		"the empty key is first":         {`{"a":1,"":2}`, `{"":2,"a":1}`},
		"long keys with one beginning":   {`{"abcdefgh2":1,"abcdefgh1":2,"abcdefgh":3}`, `{"abcdefgh":3,"abcdefgh1":2,"abcdefgh2":1}`},
		"letters for controls":           {`"\u0008\u000C\u000a\u000D\u0009\u0022\u005c"`, `"\b\f\n\r\t\"\\"`},
		"other controls in lower case":   {`"\u001F\u0000\u007f"`, "\"\\u001f\\u0000\x7f\""},
		"needless escapes are removed":   {`"\/\u003c\u00e9\u2028\uD83D\ude00"`, "\"/<é\u2028😀\""},
		"lone surrogates stay":           {`"\uD83D\uD83D\uDE00\uDE00"`, `"\ud83d😀\ude00"`},
		"a pair split by a letter":       {`"\uD83Dx\uDE00"`, `"\ud83dx\ude00"`},
		"bytes that are not UTF-8 stay":  {"\"\xff\xc3\\u00a9\xed\xa0\x80\"", "\"\xff\xc3©\xed\xa0\x80\""},
		"integers beyond 2^53 are exact": {`[9007199254740993,-123456789012345678901234567890]`, `[9007199254740993,-123456789012345678901234567890]`},
		"zero has no sign":               {`[-0,0.0,-0.00,0e5,-0E-5]`, `[0,0,0,0,0]`},
		"fractions without zeros at end": {`[1.0,1.50,-2.500,100.0]`, `[1,1.5,-2.5,100]`},
		"exponents are written out":      {`[1e3,1E+3,12.5e1,125e-1,5e-3,-1e-1]`, `[1000,1000,125,12.5,0.005,-0.1]`},
		"to 400 digits":                  {`1e399`, "1" + strings.Repeat("0", 399)},
		"not to 401":                     {`1e400`, `1E400`},
		"a long number written out":      {"25" + strings.Repeat("0", 399), `25E399`},
		"a long number without zeros":    {strings.Repeat("7", 500) + ".5", strings.Repeat("7", 500) + ".5"},
		"small to 400 digits":            {`1e-399`, "0." + strings.Repeat("0", 398) + "1"},
		"not small to 401":               {`-1.50e-400`, `-15E-401`},
		"exponents of any size":          {`1.5e999999999999999999999`, `15E999999999999999999998`},
		"at the edge of 62 bits":         {`10e2305843009213693951`, `1E2305843009213693952`},
		"literals":                       {` [true , false,null]`, `[true,false,null]`},
		"a string alone":                 {` "x" `, `"x"`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := patch.Canonical([]byte(c.in))
			require.NoError(t, err)
			require.Equal(t, c.out, string(got))
			again, err := patch.Canonical(got)
			require.NoError(t, err)
			require.Equal(t, c.out, string(again), "the canonical form is canonical")
		})
	}
}

func TestCanonicalRejectsTextThatIsNotJSONAndNamesTheByte(t *testing.T) {
	for in, problem := range map[string]string{
		"":                   "byte 0: unexpected end",
		"  ":                 "byte 2: unexpected end",
		"{} x":               "byte 3: data after the value",
		"[1,]":               "byte 3: expected a value",
		"[1 2]":              "byte 3: expected , or ]",
		"[1":                 "byte 2: unexpected end",
		`{"a":1,}`:           "byte 7: expected a key",
		`{"a" 1}`:            "byte 5: expected :",
		`{"a":1 "b":2}`:      "byte 7: expected , or }",
		`{a:1}`:              "byte 1: expected a key",
		`{"a"`:               "byte 4: unexpected end",
		`{1:2}`:              "byte 1: expected a key",
		"[1}":                "byte 2: expected , or ]",
		"nul":                "byte 0: expected a value",
		"nulL":               "byte 0: expected a value",
		"truex":              "byte 4: data after the value",
		"+1":                 "byte 0: expected a value",
		"01":                 "byte 1: digit after a leading zero",
		"-":                  "byte 1: unexpected end",
		"-x":                 "byte 1: expected a digit",
		"1.":                 "byte 2: unexpected end",
		"[1.]":               "byte 3: expected a digit after the point",
		".5":                 "byte 0: expected a value",
		"[1e]":               "byte 3: expected a digit in the exponent",
		"[1e+]":              "byte 4: expected a digit in the exponent",
		"0x10":               "byte 1: data after the value",
		"NaN":                "byte 0: expected a value",
		`"abc`:               "byte 4: unexpected end",
		"\"a\nb\"":           "byte 2: control character",
		"\"0123456789\x00\"": "byte 11: control character",
		`"\x"`:               "byte 1: invalid escape",
		`"\u12g4"`:           "byte 1: invalid escape",
		`"\u123"`:            "byte 1: invalid escape",
		`"\ud83d\u12"`:       "byte 7: invalid escape",
		`"\`:                 "byte 1: invalid escape",
		"\ufeff{}":           "byte 0: expected a value",
		"\v1":                "byte 0: expected a value",
	} {
		t.Run(in, func(t *testing.T) {
			_, err := patch.Canonical([]byte(in))
			require.ErrorContains(t, err, problem)
			require.False(t, json.Valid([]byte(in)), "encoding/json agrees")
		})
	}
}

func TestLongObjectsAreSorted(t *testing.T) {
	var members, sorted []string
	for i := range 1000 {
		members = append(members, fmt.Sprintf(`"a key %03d":"first"`, i*7%1000), fmt.Sprintf(`"\u0061 key %03d":%d`, i*7%1000, i*7%1000))
		sorted = append(sorted, fmt.Sprintf(`"a key %03d":%d`, i, i))
	}
	require.Equal(t, "{"+strings.Join(sorted, ",")+"}", string(canonical(t, "{"+strings.Join(members, ",")+"}")))
}

func TestAppendCanonicalKeepsTheBeginningOfItsBuffer(t *testing.T) {
	before := []byte("before")
	after, err := patch.AppendCanonical(before, []byte(`{"b":1,"a":2}`))
	require.NoError(t, err)
	require.Equal(t, `before{"a":2,"b":1}`, string(after))
	after, err = patch.AppendCanonical(before, []byte(`{"b":1,"a"}`))
	require.Error(t, err)
	require.Equal(t, "before", string(after))
}

func TestNestingIsLimited(t *testing.T) {
	for _, depth := range []int{9_999, 10_000} {
		for _, text := range []string{nested("[", "1", "]", depth), nested(`{"a":`, "1", "}", depth)} {
			got, err := patch.Canonical([]byte(text))
			require.NoError(t, err)
			require.Equal(t, text, string(got))
		}
	}
	for _, text := range []string{nested("[", "", "]", 10_001), nested(`{"a":`, "1", "}", 10_001), strings.Repeat("[", 5_000_000)} {
		_, err := patch.Canonical([]byte(text))
		require.ErrorContains(t, err, "nested deeper than 10000 levels")
	}
}

func TestEveryLevelOfADeepTextIsSorted(t *testing.T) {
	payload := `"` + strings.Repeat("x", 1<<20) + `"`
	got := canonical(t, nested(`{"b":`, payload, `,"a":1}`, 10_000))
	require.Equal(t, nested(`{"a":1,"b":`, payload, `}`, 10_000), string(got))
}

func nested(open, core, shut string, depth int) string {
	return strings.Repeat(open, depth) + core + strings.Repeat(shut, depth)
}

func TestEqualValuesAndOnlyTheyHaveEqualBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := dialect{}.tree(t, 3)
		one, other := canonical(t, spell(t, v)), canonical(t, spell(t, v))
		require.Equal(t, string(one), string(other), "two spellings of one value")
		require.Equal(t, string(one), string(canonical(t, one)), "idempotence")
		require.Equal(t, patch.Digest(one), patch.Digest(other))

		w := dialect{}.mutate(t, v)
		changed := canonical(t, spell(t, w))
		require.Equal(t, meaning(v) == meaning(w), bytes.Equal(one, changed), "%s\n%s", one, changed)
	})
}

func TestCanonicalKeepsTheValueThatEncodingJSONReads(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		written := spell(t, dialect{foreign: true}.tree(t, 3))
		require.Equal(t, decoded(t, written), decoded(t, canonical(t, written)))
	})
}

func TestKubernetesObjectsKeepTheirValue(t *testing.T) {
	for _, name := range kubernetesSeries {
		for _, version := range series(t, name) {
			doc := canonical(t, version)
			require.Equal(t, decoded(t, version), decoded(t, doc))
			require.Equal(t, string(doc), string(canonical(t, doc)))
		}
	}
}

// decoded reads a text with encoding/json, with exact numbers.
func decoded[T ~string | ~[]byte](t require.TestingT, written T) any {
	d := json.NewDecoder(bytes.NewReader([]byte(written)))
	d.UseNumber()
	var v any
	require.NoError(t, d.Decode(&v))
	return exact(v)
}

func exact(v any) any {
	switch v := v.(type) {
	case json.Number:
		return number(v).value()
	case []any:
		for i := range v {
			v[i] = exact(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = exact(v[k])
		}
	}
	return v
}
