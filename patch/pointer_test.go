package patch_test

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kuberewind/kuberewind/patch"
)

// sample has keys and values of every kind.
const sample = `{"":{"":"deep"},"a":[10,[20],{"b":"x"},"y"],"a/b":1,"c\"d\n":2,"m~n":3,"~1":{"/":4},"\ud800":5,"é":null}`

func TestGetFollowsAPointer(t *testing.T) {
	doc := canonical(t, sample)
	for pointer, want := range map[string]string{
		"":              string(doc),
		"/":             `{"":"deep"}`,
		"//":            `"deep"`,
		"/a":            `[10,[20],{"b":"x"},"y"]`,
		"/a/0":          "10",
		"/a/1/0":        "20",
		"/a/2/b":        `"x"`,
		"/a/3":          `"y"`,
		"/a~1b":         "1",
		"/c\"d\n":       "2",
		"/m~0n":         "3",
		"/~01/~1":       "4",
		"/é":            "null",
		"/\xed\xa0\x80": "5",
	} {
		got, ok := patch.Get(doc, pointer)
		require.True(t, ok, pointer)
		require.Equal(t, want, string(got), pointer)
	}
	for _, pointer := range []string{"a", "/b", "/a/4", "/a/-", "/a/00", "/a/x", "/a/0/0", "/a/3/0", "/a~b", "/m~2n", "/c\\\"d\\n", "/é/x", "/*", "/a/99999999999999999999"} {
		_, ok := patch.Get(doc, pointer)
		require.False(t, ok, pointer)
	}
}

func TestTextThatIsNoDocHasNoValues(t *testing.T) {
	for _, doc := range []string{"", "{", "[", `{"a"`, `{"a":`, `{"a":"b`, `{"a":[1`, `{"a":"b\`, "{\"a\":\"b\n", `{1:2}`, `{"a" 1}`, `["a`, "}", ",", `"`} {
		_, ok := patch.Get(patch.Doc(doc), "/a")
		require.False(t, ok, doc)
	}
	_, ok := patch.Get(nil, "")
	require.False(t, ok)
}

func TestSetReplacesAnExistingValue(t *testing.T) {
	doc := canonical(t, sample)
	got, err := patch.Set(doc, "/a/2/b", patch.Doc(`{"new":true}`))
	require.NoError(t, err)
	require.Equal(t, strings.Replace(string(doc), `"x"`, `{"new":true}`, 1), string(got))
	require.Equal(t, string(canonical(t, sample)), string(doc), "the document is unchanged")

	got, err = patch.Set(doc, "", patch.Doc("1"))
	require.NoError(t, err)
	require.Equal(t, "1", string(got))

	_, err = patch.Set(doc, "/a/7", patch.Doc("1"))
	require.ErrorIs(t, err, patch.ErrNotFound)
	_, err = patch.Set(doc, "/nothing", patch.Doc("1"))
	require.ErrorIs(t, err, patch.ErrNotFound)
	_, err = patch.Set(doc, "nothing", patch.Doc("1"))
	require.ErrorContains(t, err, "does not begin with /")
	_, err = patch.Set(doc, "/a", nil)
	require.ErrorContains(t, err, "empty")
}

func TestGetFindsEveryValueOfADoc(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := dialect{}.tree(t, 3)
		doc := canonical(t, spell(t, v))
		all := []patch.Path{path(t, "/*"), path(t, "/*/*/*")}
		_, err := patch.Rewrite(doc, all, func(pointer string, value patch.Doc) (patch.Doc, error) {
			if !utf8.ValidString(pointer) {
				// A key with a lone surrogate has the same pointer as a key with the bytes that stand for it.
				return value, nil
			}
			got, ok := patch.Get(doc, pointer)
			require.True(t, ok, "%q in %s", pointer, doc)
			require.Equal(t, string(value), string(got), "%q in %s", pointer, doc)
			return value, nil
		})
		require.NoError(t, err)
	})
}

func TestRewriteReplacesTheValuesThatThePathsSelect(t *testing.T) {
	doc := canonical(t, `{"data":{"a/b":"1","c":"2"},"items":[{"env":["x","y"]},{"env":["z"]},{"none":1}],"metadata":{"annotations":{"k.io/last":"3","other":"4"}},"x":5}`)
	for name, c := range map[string]struct {
		paths []string
		seen  string
		want  string
	}{
		"every member":     {[]string{"/data/*"}, "/data/a~1b=\"1\" /data/c=\"2\"", `{"data":{"a/b":0,"c":0},"items":[{"env":["x","y"]},{"env":["z"]},{"none":1}],"metadata":{"annotations":{"k.io/last":"3","other":"4"}},"x":5}`},
		"one member":       {[]string{"/metadata/annotations/k.io~1last"}, "/metadata/annotations/k.io~1last=\"3\"", strings.Replace(string(doc), `"3"`, "0", 1)},
		"elements of each": {[]string{"/items/*/env/*"}, "/items/0/env/0=\"x\" /items/0/env/1=\"y\" /items/1/env/0=\"z\"", strings.NewReplacer(`"x","y"`, "0,0", `"z"`, "0").Replace(string(doc))},
		"one element":      {[]string{"/items/1"}, `/items/1={"env":["z"]}`, strings.Replace(string(doc), `{"env":["z"]}`, "0", 1)},
		"several paths":    {[]string{"/x", "/data/c", "/data/*", "/x"}, "/data/a~1b=\"1\" /data/c=\"2\" /x=5", strings.NewReplacer(`"1"`, "0", `"2"`, "0", "5", "0").Replace(string(doc))},
		"the outermost":    {[]string{"/items/*/env", "/items"}, `/items=[{"env":["x","y"]},{"env":["z"]},{"none":1}]`, strings.Replace(string(doc), `[{"env":["x","y"]},{"env":["z"]},{"none":1}]`, "0", 1)},
		"everything":       {[]string{""}, "=" + string(doc), "0"},
		"nothing":          {[]string{"/nothing/*", "/x/*", "/items/9", "/data/c/d"}, "", string(doc)},
		"without any path": {nil, "", string(doc)},
	} {
		t.Run(name, func(t *testing.T) {
			var paths []patch.Path
			for _, text := range c.paths {
				paths = append(paths, path(t, text))
				require.Equal(t, text, paths[len(paths)-1].String())
			}
			var seen []string
			got, err := patch.Rewrite(doc, paths, func(pointer string, value patch.Doc) (patch.Doc, error) {
				seen = append(seen, pointer+"="+string(value))
				return patch.Doc("0"), nil
			})
			require.NoError(t, err)
			require.Equal(t, c.want, string(got))
			require.Equal(t, c.seen, strings.Join(seen, " "))
		})
	}
}

func TestRewriteReturnsAnUnchangedDocAndErrors(t *testing.T) {
	doc := patch.Doc(`{"a":1}`)
	got, err := patch.Rewrite(doc, []patch.Path{path(t, "/*")}, func(_ string, value patch.Doc) (patch.Doc, error) { return value, nil })
	require.NoError(t, err)
	require.Same(t, &doc[0], &got[0])

	failure := errors.New("no key")
	_, err = patch.Rewrite(doc, []patch.Path{path(t, "/a")}, func(string, patch.Doc) (patch.Doc, error) { return nil, failure })
	require.ErrorIs(t, err, failure)
	_, err = patch.Rewrite(doc, []patch.Path{path(t, "/a")}, func(string, patch.Doc) (patch.Doc, error) { return nil, nil })
	require.ErrorContains(t, err, "the new value is empty")

	_, err = patch.ParsePath("data/*")
	require.ErrorContains(t, err, "does not begin with /")
	_, err = patch.ParsePath("/a~b")
	require.ErrorContains(t, err, "has a ~")
}

func TestDigestIsTheBeginningOfSHA256(t *testing.T) {
	require.Equal(t, [16]byte{0x44, 0x13, 0x6f, 0xa3, 0x55, 0xb3, 0x67, 0x8a, 0x11, 0x46, 0xad, 0x16, 0xf7, 0xe8, 0x64, 0x9e}, patch.Digest(patch.Doc("{}")))
	require.NotEqual(t, patch.Digest(patch.Doc("1")), patch.Digest(patch.Doc("2")))
}
