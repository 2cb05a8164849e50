package patch_test

import (
	"bytes"
	"encoding/json"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/patch"
)

// More seeds are under testdata/fuzz.
var seeds = []string{
	sample, sampleWithoutLone, "", "null", `[1,"a",{"b":[]}]`, `{"b":1,"a":{"d":1,"c":-0.0e5}}`, `"\ud83d\ude00\uD800\u0000"`, "[1e400,1E-401,10.50]",
	"\"\xff\xed\xa0\x80\"", `{"a":1,"a":2}`, `[{"op":"add","path":"/a","value":1}]`, "[[[[[[1]]]]]]", ` { "a" : [ 1 , 2 ] } `,
}

func FuzzCanonical(f *testing.F) {
	for _, seed := range seeds {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		before := bytes.Clone(in)
		doc, err := patch.Canonical(in)
		require.Equal(t, before, in, "the text is unchanged")
		require.Equal(t, json.Valid(in), err == nil, "it accepts the same texts as encoding/json: %v", err)
		if err != nil {
			return
		}
		again, err := patch.Canonical(doc)
		require.NoError(t, err)
		require.Equal(t, string(doc), string(again))
		if representable(in) && representable(doc) {
			require.Equal(t, decoded(t, in), decoded(t, doc))
		}
		safe, changed := patch.SafeForSQL(doc)
		require.Equal(t, changed, !bytes.Equal(doc, safe))
		requireSafe(t, safe)
	})
}

func FuzzDecode(f *testing.F) {
	for _, seed := range seeds {
		f.Add([]byte(seed))
	}
	for _, name := range kubernetesSeries {
		f.Add(series(f, name)[0])
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		before := bytes.Clone(in)
		requireDecodesAsKubernetes(t, in)
		require.Equal(t, before, in, "the text is unchanged")
		if doc, err := patch.Canonical(in); err == nil {
			requireDecodesAsKubernetes(t, doc)
		}
	})
}

// representable reports whether encoding/json reads no part of the text as U+FFFD. It reads lone surrogates and bytes
// that are not UTF-8 so, and merges keys that differ only in these.
func representable(text []byte) bool {
	return utf8.Valid(text) && !bytes.Contains(bytes.ToLower(text), []byte(`\ud`))
}

func FuzzDiff(f *testing.F) {
	for i, seed := range seeds {
		f.Add([]byte(seed), []byte(seeds[(i+1)%len(seeds)]))
	}
	for _, name := range kubernetesSeries {
		versions := series(f, name)
		f.Add(versions[0], versions[1])
	}
	f.Fuzz(func(t *testing.T, one, other []byte) {
		_, _ = patch.Diff(one, other) // At worst this returns an error.
		from, err := patch.Canonical(one)
		if err != nil {
			return
		}
		to, err := patch.Canonical(other)
		if err != nil {
			return
		}
		roundTrip(t, from, to)
	})
}

func FuzzApply(f *testing.F) {
	for _, ops := range []string{
		`[{"op":"add","path":"/a/0","value":[]},{"op":"move","from":"/a/0","path":"/b"},{"op":"copy","from":"","path":"/c"}]`,
		`[{"op":"remove","path":"/a"},{"op":"replace","path":"","value":{"x":1}},{"op":"test","path":"/x","value":1}]`,
		`[{"op":"add","path":"/~01/~1~0","value":1}]`, `[{"op":"add","path":"/a/-","value":1}]`,
	} {
		f.Add([]byte(sample), []byte(ops))
	}
	f.Fuzz(func(t *testing.T, text, ops []byte) {
		_, _ = patch.Apply(text, ops)
		doc, err := patch.Canonical(text)
		if err != nil {
			return
		}
		before, opsBefore := bytes.Clone(doc), bytes.Clone(ops)
		got, err := patch.Apply(doc, ops)
		require.Equal(t, string(before), string(doc))
		require.Equal(t, string(opsBefore), string(ops))
		if err == nil {
			require.Equal(t, string(got), string(canonical(t, got)), "the result is canonical")
		}
	})
}

// FuzzDocs passes texts that are no Docs to the functions that trust their Doc. They may return anything, but must
// return.
func FuzzDocs(f *testing.F) {
	for _, seed := range seeds {
		f.Add([]byte(seed), "/a/*")
	}
	f.Fuzz(func(t *testing.T, doc []byte, pointer string) {
		value, ok := patch.Get(doc, pointer)
		set, err := patch.Set(doc, pointer, patch.Doc("null"))
		require.Equal(t, ok, err == nil)
		require.True(t, err != nil || len(set) == len(doc)-len(value)+len("null"))
		if p, err := patch.ParsePath(pointer); err == nil {
			_, _ = patch.Rewrite(doc, []patch.Path{p}, func(_ string, value patch.Doc) (patch.Doc, error) { return append(value, value...), nil })
		}
		_, _ = patch.SafeForSQL(doc)
	})
}
