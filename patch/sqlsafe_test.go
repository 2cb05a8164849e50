package patch_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kuberewind/kuberewind/patch"
)

// Each case was tried on jsonb of a PostgreSQL 15 server. It accepts those without a change, and rejects the others.
func TestSafeForSQLReplacesWhatPostgreSQLRejects(t *testing.T) {
	beyond := func(number string) string { return `"kuberewind: number beyond PostgreSQL numeric: ` + number + `"` }
	digits := strings.Repeat("1", 131_072)
	for name, c := range map[string]struct{ in, out string }{
		"nothing to do":              {sampleWithoutLone, sampleWithoutLone},
		"NUL":                        {`{"a\u0000b":"\u0000","c":["x\u0000\u0000y"]}`, "{\"a\uFFFDb\":\"\uFFFD\",\"c\":[\"x\uFFFD\uFFFDy\"]}"},
		"an escaped backslash":       {`"\\u0000\\\\u0000"`, `"\\u0000\\\\u0000"`},
		"a NUL after a backslash":    {`"\\\u0000"`, "\"\\\\\uFFFD\""},
		"other controls":             {`"\u0001\u001f"`, `"\u0001\u001f"`},
		"lone surrogates":            {`"\ud800 \udc00 \uDBFF\uD83D\uDE00"`, "\"\uFFFD \uFFFD \uFFFD\\uD83D\\uDE00\""},
		"a surrogate pair":           {`"\ud83d\ude00"`, `"\ud83d\ude00"`},
		"bytes that are not UTF-8":   {"{\"\xff\":\"a\xc3\",\"b\":\"\xed\xa0\x80\",\"c\":\"\\u0000\"}", "{\"\uFFFD\":\"a\uFFFD\",\"b\":\"\uFFFD\",\"c\":\"\uFFFD\"}"},
		"U+FFFF":                     {"\"\uffff\"", "\"\uffff\""},
		"131072 digits":              {digits, digits},
		"with a sign":                {"-" + digits, "-" + digits},
		"131073 digits":              {`{"a":` + digits + `1}`, `{"a":` + beyond(digits[:30]+"…"+digits[:20]+" (131073 characters)") + "}"},
		"1E131071":                   {"[1E131071]", "[1E131071]"},
		"1E131072":                   {"[1E131072,2]", "[" + beyond("1E131072") + ",2]"},
		"a long one with exponent":   {"12E131070", "12E131070"},
		"a longer one":               {"123E131070", beyond("123E131070")},
		"16383 places":               {"1e-16383", "1e-16383"},
		"16384 places":               {"-1E-16384", beyond("-1E-16384")},
		"places with a point":        {"1.5e-16383", beyond("1.5e-16383")},
		"places written out":         {"0." + digits[:16_383], "0." + digits[:16_383]},
		"one more":                   {"0." + digits[:16_384], beyond("0." + digits[:28] + "…" + digits[:20] + " (16386 characters)")},
		"huge exponents":             {"[1E99999999999999999999,-1E-99999999999999999999]", "[" + beyond("1E99999999999999999999") + "," + beyond("-1E-99999999999999999999") + "]"},
		"numbers in strings":         {`"1E99999999"`, `"1E99999999"`},
		"1000 levels":                {nested("[", "1", "]", 1000), nested("[", "1", "]", 1000)},
		"1001 levels":                {nested("[", "1", "]", 1001), nested("[", `"kuberewind: nested deeper than 1000 levels"`, "]", 1000)},
		"10000 levels and a sibling": {`{"a":` + nested(`{"b":`, `"]}\""`, "}", 10_000) + `,"c":[1]}`, `{"a":` + nested(`{"b":`, `"kuberewind: nested deeper than 1000 levels"`, "}", 999) + `,"c":[1]}`},
		"32 MiB":                     {`"` + strings.Repeat("x", 32<<20-2) + `"`, `"` + strings.Repeat("x", 32<<20-2) + `"`},
		"more than 32 MiB":           {`"` + strings.Repeat("x", 32<<20-1) + `"`, `"kuberewind: a value of 33554433 bytes is more than jsonb can hold"`},
	} {
		t.Run(name, func(t *testing.T) {
			text := []byte(c.in)
			safe, changed := patch.SafeForSQL(text)
			require.Equal(t, patch.Digest(patch.Doc(c.out)), patch.Digest(safe), "%.300s", safe)
			require.Equal(t, c.in != c.out, changed)
			require.Equal(t, c.in, string(text), "the text is unchanged")
			if !changed {
				require.Same(t, &text[0], &safe[0])
			}
		})
	}
}

const sampleWithoutLone = `{"":{"":"deep"},"a":[10,[-20.5],{"b":"x"},true],"c\"d\n":2,"é":null,"🙂":"\\\"\u0001"}`

func TestASafeTextIsJSONAndStaysUnchanged(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := []byte(spell(t, dialect{}.tree(t, 3)))
		safe, changed := patch.SafeForSQL(text)
		requireSafe(t, safe)
		require.Equal(t, changed, string(safe) != string(text))
		again, changed := patch.SafeForSQL(safe)
		require.False(t, changed)
		require.Equal(t, string(safe), string(again))
	})
}

// requireSafe checks that the text has neither NUL nor a lone surrogate. It uses encoding/json, which reads NUL and
// replaces a surrogate by U+FFFD.
func requireSafe(t require.TestingT, safe []byte) {
	require.True(t, json.Valid(safe), "%s", safe)
	require.True(t, utf8.Valid(safe))
	var v any
	d := json.NewDecoder(strings.NewReader(string(safe)))
	d.UseNumber()
	require.NoError(t, d.Decode(&v))
	require.NotContains(t, fmt.Sprint(v), "\x00")
	written := string(canonical(t, safe))
	for _, lone := range []string{`\ud`, `\u0000`} {
		require.NotContains(t, strings.ReplaceAll(written, `\\`, ""), lone)
	}
}
