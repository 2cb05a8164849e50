package field_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kuberewind/kuberewind/internal/field"
	"github.com/kuberewind/kuberewind/internal/replay/words"
	"github.com/kuberewind/kuberewind/patch"
)

// canonical returns a text in canonical form.
func canonical(t testing.TB, text string) patch.Doc {
	t.Helper()
	if text == "" {
		return nil
	}
	doc, err := patch.Canonical([]byte(text))
	require.NoError(t, err)
	return doc
}

func wordsOf(t *testing.T, before, after string) []string {
	t.Helper()
	var out []string
	for _, c := range field.Expanded(field.Visible(field.Changes(canonical(t, before), canonical(t, after)))) {
		out = append(out, words.Wording{}.Of(c))
	}
	return out
}

func TestChangesReadLikePlainWords(t *testing.T) {
	for name, c := range map[string]struct {
		before, after string
		want          []string
	}{
		"a number": {`{"spec":{"replicas":3}}`, `{"spec":{"replicas":5}}`, []string{"spec.replicas 3 → 5"}},
		"a container is called by its name": {
			`{"spec":{"containers":[{"name":"log","image":"l"},{"name":"web","image":"nginx:1.25"}]}}`,
			`{"spec":{"containers":[{"name":"web","image":"nginx:1.27"},{"name":"log","image":"l"}]}}`,
			[]string{"spec.containers[web].image nginx:1.25 → nginx:1.27", "spec.containers in another order"},
		},
		"a condition is called by its type": {
			`{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`, `{"status":{"conditions":[{"type":"Ready","status":"False"}]}}`,
			[]string{"status.conditions[Ready].status True → False"},
		},
		"labels one by one": {
			`{"metadata":{}}`, `{"metadata":{"labels":{"app":"web","app.kubernetes.io/name":"x"}}}`,
			[]string{"+ metadata.labels.app=web", "+ metadata.labels[app.kubernetes.io/name]=x"},
		},
		"a key that went": {`{"data":{"key":"v","left":"w"}}`, `{"data":{"left":"w"}}`, []string{"- data.key=v"}},
		"ports without names": {
			`{"spec":{"ports":[{"port":80},{"port":443}]}}`, `{"spec":{"ports":[{"port":80},{"port":443,"nodePort":30000}]}}`,
			[]string{"+ spec.ports[port=443].nodePort=30000"},
		},
		"an argument put in":              {`{"args":["a","b","c"]}`, `{"args":["a","x","b","c"]}`, []string{"+ args[1]=x"}},
		"an argument taken out of equals": {`{"args":["a","a","b"]}`, `{"args":["a","b"]}`, []string{"- args[1]=a"}},
		"the value of a Secret": {
			`{"data":{"password":"hmac-sha256:00","gone":"hmac-sha256:01"}}`, `{"data":{"password":"hmac-sha256:02","user":"hmac-sha256:03"}}`,
			[]string{"- data.gone", "data.password changed", "+ data.user"},
		},
		"bookkeeping": {
			`{"metadata":{"generation":1,"managedFields":[{"manager":"a"}],"resourceVersion":"1"},"status":{"observedGeneration":1}}`,
			`{"metadata":{"generation":2,"managedFields":[{"manager":"b"}],"resourceVersion":"2"},"status":{"observedGeneration":2}}`, nil,
		},
		"null and text that looks like it": {`{"a":null,"b":"1","c":""}`, `{"a":"null","b":1,"c":"x y"}`, []string{`a null → "null"`, `b "1" → 1`, `c "" → x y`}},
		"what would steer a terminal":      {`{"a":"x"}`, `{"a":"\u001b[2J\n"}`, []string{`a x → "\u001b[2J\n"`}},
		"within an element that has moved": {`[{"a":{}},{"b":{"c":1}}]`, `[1,{"a":{}},{"b":{}}]`, []string{`+ [0]=1`, `- [2].b.c=1`}},
		"one type instead of another":      {`{"a":{"b":1}}`, `{"a":[1]}`, []string{`a {"b":1} → [1]`}},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, wordsOf(t, c.before, c.after)) })
	}
}

func TestALongValueIsCutToItsDifferentPart(t *testing.T) {
	long := strings.Repeat("x", 200)
	w := words.Wording{Room: 30}
	all := field.Changes(canonical(t, `{"a":"`+long+`old`+long+`"}`), canonical(t, `{"a":"`+long+`new`+long+`"}`))
	require.Len(t, all, 1)
	c := all[0]
	require.Equal(t, "a …xxxxxxxxxxoldxxxxxxxxxxxxxxx… → …xxxxxxxxxxnewxxxxxxxxxxxxxxx…", w.Of(c))
	c.New = canonical(t, `"short"`)
	require.Equal(t, "a "+strings.Repeat("x", 29)+"… → short", w.Of(c))
	require.Contains(t, words.Wording{}.Of(c), long+"old"+long)
}

func TestThereAreChangesIfAndOnlyIfVersionsDiffer(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		value := values(3)
		before, after := value.Draw(r, "before"), value.Draw(r, "after")
		a, err := patch.Canonical([]byte(before))
		require.NoError(r, err)
		b, err := patch.Canonical([]byte(after))
		require.NoError(r, err)
		found := field.Changes(a, b)
		require.Equal(r, string(a) != string(b), len(found) > 0, "%s to %s: %v", a, b, found)
		for _, c := range found {
			_ = words.Wording{Room: 10}.Of(c)
			// The pointer of a change must find its old and new values.
			if c.Op != field.OpRemove {
				now, ok := patch.Get(b, c.Path.Pointer())
				require.True(r, ok)
				require.Equal(r, string(now), string(c.New))
			}
			if c.Op == field.OpRemove {
				old, ok := patch.Get(a, c.Path.Pointer())
				// An array element on the path may have another place in the newer version, whose place the path has.
				within := c.Path[:max(0, len(c.Path)-1)]
				moved := within.WithinArray()
				require.True(r, moved && bytes.Contains(a, c.Old) || ok && bytes.Equal(old, c.Old), "%s of %s", c.Path.Pointer(), a)
				_, ok = patch.Get(b, within.Pointer())
				require.True(r, ok, "%s of %s: what it was within is there", c.Path.Pointer(), b)
			}
		}
	})
}

// values draws JSON texts with the shapes of Kubernetes objects: maps, and lists with and without names.
func values(depth int) *rapid.Generator[string] {
	scalar := rapid.SampledFrom([]string{"1", "2", "null", "true", `"a"`, `"b"`, `"\ud800"`, `""`, "{}", "[]"})
	if depth == 0 {
		return scalar
	}
	inner := values(depth - 1)
	return rapid.OneOf(scalar,
		rapid.Custom(func(r *rapid.T) string {
			return "[" + strings.Join(rapid.SliceOfN(inner, 0, 4).Draw(r, "elements"), ",") + "]"
		}),
		rapid.Custom(func(r *rapid.T) string {
			var members []string
			for _, key := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b.c", "d/e", ""}), 0, 3, rapid.ID).Draw(r, "keys") {
				members = append(members, `"`+key+`":`+inner.Draw(r, "value"))
			}
			return "{" + strings.Join(members, ",") + "}"
		}),
		rapid.Custom(func(r *rapid.T) string {
			var elements []string
			for _, name := range rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "80"}), 0, 3).Draw(r, "names") {
				elements = append(elements, `{"name":"`+name+`","v":`+inner.Draw(r, "value")+`}`)
			}
			return "[" + strings.Join(elements, ",") + "]"
		}))
}

func TestAPatternSelectsItsPath(t *testing.T) {
	before := `{"metadata":{"labels":{"app.kubernetes.io/name":"x"}},"spec":{"replicas":1,"containers":[{"name":"web","image":"a","args":["x"]},{"name":"80","image":"b"}]}}`
	after := `{"metadata":{"labels":{"app.kubernetes.io/name":"y"}},"spec":{"replicas":2,"containers":[{"name":"web","image":"c","args":["y"]},{"name":"80","image":"d"},{"name":"new","image":"e"}]}}`
	image := []string{"spec.containers[web].image a → c", "spec.containers[name=80].image b → d", "+ spec.containers[new].image=e"}
	for pattern, want := range map[string][]string{
		"spec.replicas":                             {"spec.replicas 1 → 2"},
		".spec.replicas":                            {"spec.replicas 1 → 2"},
		"/spec/replicas":                            {"spec.replicas 1 → 2"},
		"spec.containers[*].image":                  image,
		"spec.containers.*.image":                   image,
		"/spec/containers/*/image":                  image,
		"spec.containers[0].image":                  image[:1],
		"/spec/containers/0/image":                  image[:1],
		"spec.containers[web].image":                image[:1],
		"spec.containers[name=web].image":           image[:1],
		`spec.containers["80"].image`:               image[1:2],
		"spec.containers[name=80].image":            image[1:2],
		"spec.containers[new]":                      {`+ spec.containers[new] {"image":"e","name":"new"}`},
		"spec.containers[web].args":                 {"spec.containers[web].args[0] x → y"},
		"metadata.labels[app.kubernetes.io/name]":   {"metadata.labels[app.kubernetes.io/name] x → y"},
		`metadata.labels.app\.kubernetes\.io/name`:  {"metadata.labels[app.kubernetes.io/name] x → y"},
		`metadata.labels['app.kubernetes.io/name']`: {"metadata.labels[app.kubernetes.io/name] x → y"},
		"metadata":        {"metadata.labels[app.kubernetes.io/name] x → y"},
		"spec.nothing":    nil,
		"spec.replicas.x": nil,
	} {
		t.Run(pattern, func(t *testing.T) {
			p, err := field.ParsePattern(pattern)
			require.NoError(t, err)
			var got []string
			for _, c := range p.SelectFrom(field.Changes(canonical(t, before), canonical(t, after))) {
				got = append(got, words.Wording{}.Of(c))
			}
			require.Equal(t, want, got)
		})
	}
	p, err := field.ParsePattern("spec.containers[*].image")
	require.NoError(t, err)
	require.Len(t, p.SelectFrom(field.Changes(nil, canonical(t, before))), 2, "a creation sets all values below the path")
	require.Len(t, p.SelectFrom([]field.Change{{Op: field.OpRemove, Old: canonical(t, before)}}), 2, "a deletion removes them")
}

func TestAnInvalidPathIsRejectedWithTheValidForms(t *testing.T) {
	for _, text := range []string{"", ".", "a..b", "a.", "a[", "a[]", "a]", "a[b", "a[=x]", "a[x=]", `a["x]`, "a['x'", "a[[x]]", "a[0]b", "/a~2", "/a~"} {
		_, err := field.ParsePattern(text)
		require.ErrorContains(t, err, "spec.containers[*].image", "%q", text)
	}
}

func FuzzPattern(f *testing.F) {
	for _, seed := range []string{"a.b[*]", `a["x"].c`, "/a/b~1c", `a\.b`, "a[x=y]"} {
		f.Add(seed)
	}
	doc, err := patch.Canonical([]byte(`{"a":{"b":[{"name":"x","c":1}]},"x":[1,[2]]}`))
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, text string) {
		p, err := field.ParsePattern(text)
		if err != nil {
			return
		}
		for _, c := range p.SelectFrom(field.Changes(nil, doc)) {
			got, ok := patch.Get(doc, c.Path.Pointer())
			require.True(t, ok)
			require.Equal(t, string(got), string(c.New))
		}
	})
}

// A user can pass a printed path to --path.
func TestAPrintedPathIsAPatternForItself(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		a, err := patch.Canonical([]byte(values(3).Draw(r, "before")))
		require.NoError(r, err)
		b, err := patch.Canonical([]byte(values(3).Draw(r, "after")))
		require.NoError(r, err)
		all := field.Changes(a, b)
		for _, c := range all {
			if len(c.Path) == 0 {
				continue
			}
			p, err := field.ParsePattern(c.Path.String())
			require.NoError(r, err, "%s", c.Path)
			require.NotEmpty(r, p.SelectFrom([]field.Change{c}), "%s of %s to %s", c.Path, a, b)
		}
	})
}
