package patch_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kuberewind/kuberewind/patch"
)

func TestDiffDescribesTheChange(t *testing.T) {
	for name, c := range map[string]struct{ from, to, want string }{
		"nothing":                      {`{"a":1}`, `{"a":1}`, `[]`},
		"a member replaced":            {`{"spec":{"replicas":3}}`, `{"spec":{"replicas":5}}`, `[{"old":3,"op":"replace","path":"/spec/replicas","value":5}]`},
		"a member added":               {`{"a":1}`, `{"a":1,"b":null}`, `[{"op":"add","path":"/b","value":null}]`},
		"a member removed":             {`{"a":1,"b":[2]}`, `{"a":1}`, `[{"old":[2],"op":"remove","path":"/b"}]`},
		"null is a value":              {`{"a":1}`, `{"a":null}`, `[{"old":1,"op":"replace","path":"/a","value":null}]`},
		"the root replaced":            {`1`, `"x"`, `[{"old":1,"op":"replace","path":"","value":"x"}]`},
		"another kind of root":         {`[1]`, `{}`, `[{"old":[1],"op":"replace","path":"","value":{}}]`},
		"an empty key":                 {`{"":{"":1}}`, `{"":{"":22}}`, `[{"old":1,"op":"replace","path":"//","value":22}]`},
		"/ and ~ in keys":              {`{"a/b~c":1,"long":"enough"}`, `{"a/b~c":2,"long":"enough"}`, `[{"old":1,"op":"replace","path":"/a~1b~0c","value":2}]`},
		"a quote in a key":             {`{"k:{\"a\":1}":1,"x":1}`, `{"k:{\"a\":1}":2,"x":1}`, `[{"old":1,"op":"replace","path":"/k:{\"a\":1}","value":2}]`},
		"an element appended":          {`["a","b"]`, `["a","b","c"]`, `[{"op":"add","path":"/2","value":"c"}]`},
		"an element at the head":       {`["a","b"]`, `["c","a","b"]`, `[{"op":"add","path":"/0","value":"c"}]`},
		"an element in the middle":     {`[1,2,3,4]`, `[1,2,9,3,4]`, `[{"op":"add","path":"/2","value":9}]`},
		"an element removed":           {`["aaaaaaaaaaaa","bbbbbbbbbbbb","cccccccccccc"]`, `["aaaaaaaaaaaa","cccccccccccc"]`, `[{"old":"bbbbbbbbbbbb","op":"remove","path":"/1"}]`},
		"indices are of the new array": {long(`["a","b","c","d"]`), long(`["b","c","x","d","e"]`), long(`[{"old":"a","op":"remove","path":"/0"},{"op":"add","path":"/2","value":"x"},{"op":"add","path":"/4","value":"e"}]`)},
		"longer edits become a replace": {`{"a":{"b":1,"c":2,"d":3}}`, `{"a":{"b":2,"c":3,"d":4}}`,
			`[{"old":{"b":1,"c":2,"d":3},"op":"replace","path":"/a","value":{"b":2,"c":3,"d":4}}]`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := patch.Diff(canonical(t, c.from), canonical(t, c.to))
			require.NoError(t, err)
			require.Equal(t, c.want, string(got))
		})
	}
}

// long lengthens the strings of one letter, so that replacing everything is not the shorter way.
func long(s string) string {
	for _, letter := range "abcdex" {
		s = strings.ReplaceAll(s, fmt.Sprintf(`"%c"`, letter), `"`+strings.Repeat(string(letter), 40)+`"`)
	}
	return s
}

// operations returns the operations of a patch as "op path", with from between the two if there is one.
func operations(t require.TestingT, ops []byte) []string {
	var list []struct{ Op, From, Path string }
	require.NoError(t, json.Unmarshal(ops, &list))
	got := []string{}
	for _, o := range list {
		if o.Op == "move" {
			o.Op += " " + o.From
		}
		got = append(got, o.Op+" "+o.Path)
	}
	return got
}

func TestDiffEditsTheElementsOfKubernetesLists(t *testing.T) {
	condition := func(kind, status string) string {
		return fmt.Sprintf(`{"lastTransitionTime":"2026-11-21T09:00:00Z","message":"something to say of it","reason":"Because","status":"%s","type":"%s"}`, status, kind)
	}
	container := func(name, image string) string {
		return fmt.Sprintf(`{"args":["--listen=:8080","--log-format=json"],"env":[{"name":"REGION","value":"eu"}],"image":"%s","name":"%s"}`, image, name)
	}
	entry := func(manager, subresource, time string) string {
		return fmt.Sprintf(`{"apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:status":{"f:%s":{}}},"manager":"%s","operation":"Update","subresource":"%s","time":"%s"}`, time, manager, subresource, time)
	}
	mount := func(name, path, more string) string {
		return fmt.Sprintf(`{"mountPath":"%s","name":"%s","readOnly":true%s}`, path, name, more)
	}
	list := func(elements ...string) string { return "[" + strings.Join(elements, ",") + "]" }
	for name, c := range map[string]struct {
		from, to string
		want     []string
	}{
		"a condition changes": {
			list(condition("Initialized", "True"), condition("Ready", "False"), condition("PodScheduled", "True")),
			list(condition("Initialized", "True"), condition("Ready", "True"), condition("PodScheduled", "True")),
			[]string{"replace /1/status"}},
		"two conditions of three change": {
			list(condition("Initialized", "False"), condition("Ready", "False"), condition("PodScheduled", "True")),
			list(condition("Initialized", "True"), condition("Ready", "True"), condition("PodScheduled", "True")),
			[]string{"replace /0/status", "replace /1/status"}},
		"a condition comes first and another changes": {
			list(condition("Initialized", "True"), condition("Ready", "False")),
			list(condition("DisruptionTarget", "True"), condition("Initialized", "True"), condition("Ready", "True")),
			[]string{"add /0", "replace /2/status"}},
		"a container is added between two that change": {
			list(container("app", "app:1"), container("envoy", "envoy:1")),
			list(container("app", "app:2"), container("logs", "logs:1"), container("envoy", "envoy:2")),
			[]string{"replace /0/image", "add /1", "replace /2/image"}},
		"the first container is removed and the next changes": {
			list(container("app", "app:1"), container("envoy", "envoy:1"), container("logs", "logs:1")),
			list(container("envoy", "envoy:2"), container("logs", "logs:1")),
			[]string{"remove /0", "replace /0/image"}},
		"the middle one is removed": {
			list(container("app", "app:1"), container("envoy", "envoy:1"), container("logs", "logs:1")),
			list(container("app", "app:1"), container("logs", "logs:1")),
			[]string{"remove /1"}},
		"two are exchanged": {
			list(container("app", "app:1"), container("envoy", "envoy:1")),
			list(container("envoy", "envoy:1"), container("app", "app:1")),
			[]string{"move /0 /1"}},
		"the last comes first": {
			list(container("app", "app:1"), container("envoy", "envoy:1"), container("logs", "logs:1")),
			list(container("logs", "logs:1"), container("app", "app:1"), container("envoy", "envoy:1")),
			[]string{"move /2 /0"}},
		"one is moved to the end and changed, and one before it is removed": {
			list(container("app", "app:1"), container("envoy", "envoy:1"), container("logs", "logs:1"), container("proxy", "proxy:1")),
			list(container("logs", "logs:1"), container("proxy", "proxy:1"), container("app", "app:2")),
			[]string{"move /0 /3", "remove /0", "replace /2/image"}},
		"all are reordered": {
			list(container("app", "app:1"), container("envoy", "envoy:1"), container("logs", "logs:1"), container("proxy", "proxy:1")),
			list(container("proxy", "proxy:1"), container("logs", "logs:1"), container("envoy", "envoy:1"), container("app", "app:1")),
			[]string{"move /0 /3", "move /0 /2", "move /0 /1"}},
		"the removed and the added element share little except the name": {
			list(container("app", "app:1"), container("envoy", "envoy:1")),
			list(container("envoy", "envoy:1"), `{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6,"g":7,"h":8,"i":9,"j":10,"k":11,"l":12,"m":13,"n":14,"name":"app","o":15,"p":16,"text":"a long one-liner of something"}`),
			[]string{"remove /0", "add /1"}},
		"a manager writes, and its entry moves to the end, because entries are ordered by time": {
			list(entry("kubelet", "status", "1"), entry("kubectl", "", "2")),
			list(entry("kubectl", "", "2"), strings.Replace(entry("kubelet", "status", "1"), `"time":"1"`, `"time":"3"`, 1)),
			[]string{"move /0 /1", "replace /1/time"}},
		"a container has another name": {
			list(container("app", "app:1"), container("envoy", "envoy:1")),
			list(container("shop", "app:1"), container("envoy", "envoy:1")),
			[]string{"replace /0/name"}},
		"one manager's entry among several": {
			list(entry("kubectl", "", "1"), entry("kubelet", "", "1"), entry("kubelet", "status", "1")),
			list(entry("kubectl", "", "1"), entry("kubelet", "status", "1"), entry("argocd", "", "2")),
			[]string{"remove /1", "add /2"}},
		"mounts of one volume": {
			list(mount("data", "/a", ""), mount("data", "/b", ""), mount("data", "/c", "")),
			list(mount("data", "/a", ""), mount("data", "/c", `,"subPath":"x"`)),
			[]string{"remove /1", "add /1/subPath"}},
		"elements without a name": {
			`[{"from":[{"ip":"10.0.0.0/8"}],"ports":[80,81]},{"from":[{"ip":"10.1.0.0/16"}],"ports":[90,91,92,93]}]`,
			`[{"from":[{"ip":"10.9.0.0/16"}]},{"from":[{"ip":"10.0.0.0/8"}],"ports":[80,81]},{"from":[{"ip":"10.1.0.0/16"}],"ports":[90,91,92,93,94]}]`,
			[]string{"add /0", "add /2/ports/4"}},
		"lists in lists": {
			`[["aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa","bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"],["ccccccccccccccccccccccccccccc"]]`,
			`[["aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa","bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"],["ccccccccccccccccccccccccccccc","d"]]`,
			[]string{"add /1/1"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := roundTrip(t, canonical(t, c.from), canonical(t, c.to))
			require.Equal(t, c.want, operations(t, got), "%s", got)
		})
	}
}

// roundTrip returns the patch between two Docs after checking everything that it guarantees.
func roundTrip(t require.TestingT, from, to patch.Doc) []byte {
	ops, err := patch.Diff(from, to)
	require.NoError(t, err)
	require.Equal(t, string(ops), string(canonical(t, ops)), "a patch is canonical")
	got, err := patch.Apply(from, ops)
	require.NoError(t, err)
	require.Equal(t, string(to), string(got), "%s", ops)
	got, err = patch.Apply(to, inverse(t, ops))
	require.NoError(t, err)
	require.Equal(t, string(from), string(got), "a patch can be undone with its old members: %s", ops)
	whole := fmt.Sprintf(`[{"old":%s,"op":"replace","path":"","value":%s}]`, from, to)
	require.LessOrEqual(t, len(ops), len(whole), "a patch is never longer than replacing everything: %s %s", whole, ops)
	checked, err := patch.AppendRebasedDiff([]byte("before"), bytes.Clone(from), to, "/nowhere/at all", patch.Doc("1"))
	require.NoError(t, err)
	require.Equal(t, "before"+string(ops), string(checked))
	return ops
}

type operation struct {
	Op    string          `json:"op"`
	From  json.RawMessage `json:"from,omitempty"`
	Path  json.RawMessage `json:"path"`
	Old   json.RawMessage `json:"old,omitempty"`
	Value json.RawMessage `json:"value,omitempty"`
}

// inverse undoes a patch of Diff: "old" holds everything that is needed.
func inverse(t require.TestingT, ops []byte) []byte {
	var list []operation
	require.NoError(t, json.Unmarshal(ops, &list))
	slices.Reverse(list)
	undone := []string{}
	for _, o := range list {
		switch o.Op {
		case "add":
			require.Nil(t, o.Old)
			undone = append(undone, fmt.Sprintf(`{"op":"remove","path":%s}`, o.Path))
		case "remove":
			undone = append(undone, fmt.Sprintf(`{"op":"add","path":%s,"value":%s}`, o.Path, o.Old))
		case "replace":
			undone = append(undone, fmt.Sprintf(`{"op":"replace","path":%s,"value":%s}`, o.Path, o.Old))
		case "move":
			undone = append(undone, fmt.Sprintf(`{"from":%s,"op":"move","path":%s}`, o.Path, o.From))
		default:
			require.Fail(t, "unexpected operation", o.Op)
		}
	}
	return []byte("[" + strings.Join(undone, ",") + "]")
}

func TestApplyOfADiffMakesTheNewValueAndBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := dialect{}.tree(t, 4)
		w := dialect{}.mutate(t, v)
		from, to := canonical(t, spell(t, v)), canonical(t, spell(t, w))
		ops := roundTrip(t, from, to)
		require.Equal(t, meaning(v) == meaning(w), string(ops) == "[]")
	})
}

// The library keeps keys and strings as Go strings, and so loses lone surrogates and bytes that are not UTF-8. It takes
// an empty key for the container itself, and can replace the root only by an object or array. In all other cases it
// must get the same result.
func TestADiffAppliedByTheLibraryMakesTheNewValue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := dialect{foreign: true}
		v := d.container(t, 4)
		w := d.mutate(t, v)
		from, to := canonical(t, spell(t, v)), canonical(t, spell(t, w))
		ops, err := patch.Diff(from, to)
		require.NoError(t, err)
		got, err := applyForeign(from, ops)
		require.NoError(t, err, "%s", ops)
		require.Equal(t, string(to), string(canonical(t, got)))
	})
}

func applyForeign(doc, ops []byte) ([]byte, error) {
	p, err := jsonpatch.DecodePatch(ops)
	if err != nil {
		return nil, err
	}
	options := jsonpatch.NewApplyOptions()
	options.SupportNegativeIndices = false
	return p.ApplyWithOptions(doc, options)
}

func TestKubernetesObjectsFoldFromTheirPatches(t *testing.T) {
	for _, name := range kubernetesSeries {
		versions := series(t, name)
		before := canonical(t, versions[0])
		var size, patches int
		for _, version := range versions[1:] {
			after := canonical(t, version)
			ops := roundTrip(t, before, after)
			foreign, err := applyForeign(before, ops)
			require.NoError(t, err)
			require.Equal(t, string(after), string(canonical(t, foreign)))
			size, patches = size+len(after), patches+len(ops)
			before = after
		}
		t.Logf("%s: patches are %.1f %% of the objects", name, 100*float64(patches)/float64(size))
		require.Less(t, patches*4, size, name)
	}
}

func TestKubernetesObjectsChangedAtRandomRoundTrip(t *testing.T) {
	for _, name := range kubernetesSeries {
		versions := series(t, name)
		var trees []tree
		for _, version := range versions {
			trees = append(trees, read(t, version))
		}
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				v := rapid.SampledFrom(trees).Draw(t, "version")
				from := canonical(t, plain(v))
				to := canonical(t, plain(dialect{foreign: true}.mutate(t, v)))
				ops := roundTrip(t, from, to)
				foreign, err := applyForeign(from, ops)
				require.NoError(t, err, "%s", ops)
				require.Equal(t, string(to), string(canonical(t, foreign)))
			})
		})
	}
}

// Quadratic work on these would exceed the time limit of any test.
func TestADiffOfHugeValuesTakesNoQuadraticTime(t *testing.T) {
	numbers := func(n int, f func(int) string) string {
		parts := make([]string, n)
		for i := range parts {
			parts[i] = f(i)
		}
		return "[" + strings.Join(parts, ",") + "]"
	}
	random := rand.New(rand.NewPCG(1, 2))
	megabyte := strings.Repeat("x", 1<<20)
	chain := func(core string) string {
		return nested(`["`+strings.Repeat("p", 100)+`",`, core, `,"q`+core[1:2]+`"]`, 5_000)
	}
	object := func(i int) string { return fmt.Sprintf(`{"name":"element-%d","value":%d}`, i, i*i) }
	for name, c := range map[string]struct{ from, to string }{
		"strings":              {`"` + megabyte + `a"`, `"` + megabyte + `b"`},
		"all numbers differ":   {numbers(10_000, func(i int) string { return fmt.Sprint(i) }), numbers(10_000, func(i int) string { return fmt.Sprint(-i - 1) })},
		"ones and zeros":       {numbers(10_000, func(int) string { return fmt.Sprint(random.IntN(2)) }), numbers(9_000, func(int) string { return fmt.Sprint(random.IntN(2)) })},
		"objects shuffled":     {numbers(10_000, object), numbers(10_000, func(i int) string { return object(i * 7919 % 10_000) })},
		"every object changed": {numbers(10_000, object), numbers(10_000, func(i int) string { return strings.Replace(object(i), "value", "other", 1) })},
		"a pattern shifted":    {numbers(10_000, func(i int) string { return fmt.Sprint(i % 7) }), numbers(10_000, func(i int) string { return fmt.Sprint((i + 3) % 7) })},
		"many before many that stay": {
			`["p",` + numbers(200_000, func(i int) string { return fmt.Sprint(i) })[1:], "[" + strings.Repeat("-1,", 200_000) + strings.TrimSuffix(numbers(200_000, func(i int) string { return fmt.Sprint(i) })[1:], "]") + `,"q"]`,
		},
		"one against many":         {numbers(1, object), numbers(10_000, func(i int) string { return object(i + 1) })},
		"deep, changed inside":     {chain(`"a` + megabyte + `"`), chain(`"b` + megabyte + `"`)},
		"deep, changed everywhere": {nested(`{"a":1,"b":`, `"`+megabyte[:1<<17]+`"`, "}", 9_999), nested(`{"a":2,"b":`, `"`+megabyte[:1<<17]+`"`, "}", 9_999)},
		"deep, long path, many":    {nested(`{"k`+strings.Repeat("k", 60)+`":`, numbers(10_000, object), "}", 9_000), nested(`{"k`+strings.Repeat("k", 60)+`":`, numbers(10_000, func(i int) string { return object(i + i%2) }), "}", 9_000)},
	} {
		t.Run(name, func(t *testing.T) {
			from, to := canonical(t, c.from), canonical(t, c.to)
			ops, err := patch.Diff(from, to)
			require.NoError(t, err)
			got, err := patch.Apply(from, ops)
			require.NoError(t, err)
			require.Equal(t, patch.Digest(to), patch.Digest(got))
			require.LessOrEqual(t, len(ops), len(from)+len(to)+100)
		})
	}
}

func TestFewChangesInAHugeArrayNeedFewOperations(t *testing.T) {
	elements := make([]string, 10_000)
	for i := range elements {
		elements[i] = fmt.Sprintf(`{"addresses":["10.0.%d.%d"],"conditions":{"ready":true},"nodeName":"node-%d"}`, i/256, i%256, i%40)
	}
	from := canonical(t, "["+strings.Join(elements, ",")+"]")
	elements[9_000] = strings.Replace(elements[9_000], "true", "false", 1)
	elements = slices.Delete(elements, 5_000, 5_001)
	elements = slices.Insert(elements, 100, `{"addresses":["10.9.9.9"],"conditions":{"ready":false},"nodeName":"node-new"}`)
	ops := roundTrip(t, from, canonical(t, "["+strings.Join(elements, ",")+"]"))
	require.Equal(t, []string{"add /100", "remove /5001", "replace /9000/conditions/ready"}, operations(t, ops))
}

func TestDiffRejectsTextThatIsNoDoc(t *testing.T) {
	for _, bad := range []string{"", "{", `{"b":1,"a":2}`, "[1, 2]", `"\u0041"`, "1.0", "1e2", " 1", `{"a":1,"a":2}`} {
		_, err := patch.Diff(patch.Doc(bad), patch.Doc("1"))
		require.ErrorContains(t, err, "old document", bad)
		_, err = patch.Diff(patch.Doc("1"), patch.Doc(bad))
		require.ErrorContains(t, err, "new document", bad)
	}
	for _, good := range []string{"1E400", strings.Repeat("1", 500), "0.5", `"\ud800"`} {
		roundTrip(t, patch.Doc(good), patch.Doc("1"))
	}
}

func TestARebasedDiffEqualsTheDiffOfTheDocumentWithTheValueSet(t *testing.T) {
	docs := []patch.Doc{
		canonical(t, `{"metadata":{"name":"a","resourceVersion":"10","uid":"u"},"spec":[1,{"resourceVersion":"x"}]}`),
		canonical(t, `{"metadata":{"name":"a","resourceVersion":"11","uid":"u"},"spec":[2,{"resourceVersion":"x"}]}`),
		canonical(t, `{"metadata":{"name":"a"}}`), canonical(t, `{"metadata":["10"]}`), canonical(t, `"10"`),
		canonical(t, `{"metadata":{"resourceVersion":{"a":"b"}},"a/b":[0,[1,2]]}`),
	}
	for _, pointer := range []string{"/metadata/resourceVersion", "/metadata", "/spec/1/resourceVersion", "/spec/7", "/spec/x", "/metadata/0", "/a~1b/1/0", ""} {
		for _, value := range []patch.Doc{patch.Doc(`"11"`), patch.Doc(`"1234"`), patch.Doc(`9`), patch.Doc(`{"a":1}`), patch.Doc(`[[1]]`)} {
			for _, from := range docs {
				for _, to := range docs {
					base, err := patch.Set(from, pointer, value)
					if err != nil {
						base = from
					}
					want, err := patch.Diff(base, to)
					require.NoError(t, err)
					got, err := patch.AppendRebasedDiff(nil, bytes.Clone(from), to, pointer, value)
					require.NoError(t, err)
					require.Equal(t, string(want), string(got), "%s of %s to be %s, then %s", pointer, from, value, to)
				}
			}
		}
	}
	for _, bad := range [][3]string{{"{", "1", "/a"}, {"1", "{", "/a"}, {"1", "2", "a"}, {"1", "2", "/~"}} {
		got, err := patch.AppendRebasedDiff([]byte("before"), patch.Doc(bad[0]), patch.Doc(bad[1]), bad[2], patch.Doc("3"))
		require.Error(t, err, bad)
		require.Equal(t, "before", string(got))
	}
}

func TestAppendDiffKeepsTheBeginningOfItsBuffer(t *testing.T) {
	got, err := patch.AppendDiff([]byte("before"), patch.Doc("1"), patch.Doc("1"))
	require.NoError(t, err)
	require.Equal(t, "before[]", string(got))
	got, err = patch.AppendDiff([]byte("before"), patch.Doc("[1]"), patch.Doc("[1,2]"))
	require.NoError(t, err)
	require.Equal(t, `before[{"op":"add","path":"/1","value":2}]`, string(got))
}
