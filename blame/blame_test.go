package blame_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kuberewind/kuberewind/blame"
	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/patch"
)

// A life creates versions as the record has them.
type life struct {
	t    require.TestingT
	doc  patch.Doc
	seq  int64
	fold blame.Fold
}

func canonical(t require.TestingT, text string) patch.Doc {
	doc, err := patch.Canonical([]byte(text))
	require.NoError(t, err)
	return doc
}

// becomes adds a version. It has a patch, unless it is the first version or change removes the patch.
func (l *life) becomes(text string, change func(*history.Version)) *history.Version {
	v := &history.Version{Before: l.doc, Doc: canonical(l.t, text)}
	l.seq++
	v.Seq, v.RV, v.Type, v.Source = l.seq, fmt.Sprint(l.seq), delta.Updated, "watch"
	if l.doc == nil {
		v.Type = delta.Added
	} else {
		var err error
		v.Patch, err = patch.Diff(l.doc, v.Doc)
		require.NoError(l.t, err)
	}
	if change != nil {
		change(v)
	}
	require.NoError(l.t, l.fold.Add(v))
	l.doc = v.Doc
	return v
}

// blamed returns each line after the seq of its version.
func (l *life) blamed() string {
	lines, err := l.fold.Lines(false)
	require.NoError(l.t, err)
	var b strings.Builder
	for _, line := range lines {
		mark := " "
		switch {
		case line.Origin.Earlier:
			mark = "<"
		case line.Origin.Latest:
			mark = "~"
		}
		fmt.Fprintf(&b, "%s%d %s\n", mark, line.Origin.Seq, line.Text)
	}
	return b.String()
}

func TestALineNamesTheVersionThatLastSetIt(t *testing.T) {
	l := &life{t: t}
	l.becomes(`{"metadata":{"name":"a","resourceVersion":"1"},"spec":{"replicas":1,"text":"one\ntwo\n"}}`, nil)
	l.becomes(`{"metadata":{"labels":{"x":"y"},"name":"a","resourceVersion":"2"},"spec":{"replicas":2,"text":"one\ntwo\n"}}`, nil)
	l.becomes(`{"metadata":{"labels":{"x":"y","z":"1"},"name":"a","resourceVersion":"3"},"spec":{"replicas":2,"text":"one\ntwo\n"}}`, nil)
	require.Equal(t, ` 1 metadata:
 2   labels:
 2     x: "y"
 3     z: "1"
 1   name: a
 3   resourceVersion: "3"
 1 spec:
 2   replicas: 2
 1   text: |
 1     one
 1     two
`, l.blamed())
}

func TestAnElementThatMovesKeepsItsVersion(t *testing.T) {
	l := &life{t: t}
	l.becomes(`{"l":[{"name":"a","v":1},{"name":"b","v":1},{"name":"c","v":1}]}`, nil)
	l.becomes(`{"l":[{"name":"c","v":2},{"name":"a","v":1},{"name":"b","v":1}]}`, nil)
	l.becomes(`{"l":[{"name":"new","v":3},{"name":"c","v":2},{"name":"b","v":1}]}`, nil)
	require.Equal(t, ` 1 l:
 3 - name: new
 3   v: 3
 1 - name: c
 2   v: 2
 1 - name: b
 1   v: 1
`, l.blamed())
}

func TestAnEqualPartOfAReplacedValueKeepsItsVersion(t *testing.T) {
	l := &life{t: t}
	l.becomes(`{"s":{"a":1,"b":{"c":1},"l":[1,2,3]}}`, nil)
	l.becomes(`{"s":{"a":1,"b":{"c":2},"l":[9,2,3]}}`, func(v *history.Version) {
		v.Patch = canonical(t, `[{"op":"replace","path":"/s","old":{"a":1,"b":{"c":1},"l":[1,2,3]},"value":{"a":1,"b":{"c":2},"l":[9,2,3]}}]`)
	})
	require.Equal(t, " 1 s:\n 1   a: 1\n 1   b:\n 2     c: 2\n 1   l:\n 2   - 9\n 1   - 2\n 1   - 3\n", l.blamed())
}

func TestAVersionThatEmptiesAContainerSetsItsLine(t *testing.T) {
	l := &life{t: t}
	l.becomes(`{"labels":{"a":"b"},"list":[1],"other":{"a":1}}`, nil)
	l.becomes(`{"labels":{},"list":[],"other":{"b":1}}`, nil)
	require.Equal(t, " 2 labels: {}\n 2 list: []\n 1 other:\n 2   b: 1\n", l.blamed())
}

func TestLinesFromBeforeTheRecordAreEarlier(t *testing.T) {
	l := &life{t: t}
	l.becomes(`{"a":1,"b":1}`, func(v *history.Version) { v.Type, v.Source = delta.Sync, "list" })
	l.becomes(`{"a":1,"b":2}`, nil)
	require.Equal(t, "<1 a: 1\n 2 b: 2\n", l.blamed())
}

func TestAKeyframeIsComparedWithThePreviousVersion(t *testing.T) {
	l := &life{t: t}
	l.becomes(`{"a":1,"b":1,"c":1}`, nil)
	l.becomes(`{"a":1,"b":2,"c":1}`, func(v *history.Version) { v.Patch = nil })
	l.becomes(`{"a":1,"b":2,"c":1}`, func(v *history.Version) { v.Type, v.Source, v.Patch = delta.Sync, "resync", nil })
	l.becomes(`{"a":1,"b":2,"c":2}`, func(v *history.Version) { v.Type, v.Source, v.Patch = delta.Sync, "relist", nil })
	require.Equal(t, " 1 a: 1\n 2 b: 2\n~4 c: 2\n", l.blamed(), "a list found the last version: another version may have set it")
}

func TestAVersionAfterADamagedOneIsLatest(t *testing.T) {
	l := &life{t: t}
	l.becomes(`{"a":1,"b":1}`, nil)
	require.NoError(t, l.fold.Add(&history.Version{}), "a damaged version")
	l.becomes(`{"a":1,"b":2}`, func(v *history.Version) { v.Before, v.Patch = nil, nil })
	require.Equal(t, " 1 a: 1\n~2 b: 2\n", l.blamed())
}

func TestAPatchThatDoesNotFitIsAnError(t *testing.T) {
	for _, text := range []string{
		`[{"op":"remove","path":"/x"}]`, `[{"op":"replace","path":"/l/4","value":1}]`, `[{"op":"add","path":"/l/4","value":1}]`,
		`[{"op":"add","path":"/a/b","value":1}]`, `[{"op":"move","from":"/x","path":"/y"}]`, `[{"op":"copy","from":"/a","path":"/y"}]`,
	} {
		l := &life{t: t}
		l.becomes(`{"a":1,"l":[1]}`, nil)
		err := l.fold.Add(&history.Version{Delta: history.Delta{Seq: 2, Patch: canonical(t, text)}, Before: l.doc, Doc: l.doc})
		require.ErrorContains(t, err, "fold seq 2: ", text)
	}
}

func TestAFoldWithoutVersionsHasNoLines(t *testing.T) {
	_, err := new(blame.Fold).Lines(false)
	require.ErrorIs(t, err, blame.ErrNothing)
}

// value returns a random value: a scalar, an object, a list, or a list of named elements.
func value(t *rapid.T, depth int) any {
	kinds := []string{"scalar", "scalar", "object", "list", "named"}
	switch rapid.SampledFrom(kinds[:min(len(kinds), 2+3*depth)]).Draw(t, "kind") {
	case "object":
		return object(t, depth)
	case "list":
		return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) any { return value(t, depth-1) }), 0, 4).Draw(t, "list")
	case "named":
		list := []any{}
		for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d"}), 0, 4, rapid.ID).Draw(t, "names") {
			element := object(t, depth-1)
			element["name"] = name
			list = append(list, element)
		}
		return list
	}
	return rapid.SampledFrom([]any{1, 2, "x", "two\nlines", true, nil, ""}).Draw(t, "scalar")
}

func object(t *rapid.T, depth int) map[string]any {
	o := map[string]any{}
	for _, key := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "a/b", "m~n", "0", "10", `q"`, "é"}), 0, 4, rapid.ID).Draw(t, "keys") {
		o[key] = value(t, max(0, depth-1))
	}
	return o
}

// edited returns a document with a few other values, because two versions of an object are mostly equal.
func edited(t *rapid.T, v any, depth int) any {
	if rapid.IntRange(0, 5).Draw(t, "new") == 0 {
		return value(t, max(0, depth))
	}
	switch v := v.(type) {
	case map[string]any:
		o := map[string]any{}
		for key, member := range v {
			o[key] = edited(t, member, depth-1)
		}
		return o
	case []any:
		list := []any{}
		for _, element := range v {
			list = append(list, edited(t, element, depth-1))
		}
		return rapid.Permutation(list).Draw(t, "order")
	}
	return v
}

// A shadow is a document in which the value of each scalar is the seq of the version that set it. It is a naive blame that
// only applies RFC 6902.
type shadow struct{ doc patch.Doc }

func tagged(v any, seq int64) any {
	switch v := v.(type) {
	case map[string]any:
		o := map[string]any{}
		for key, member := range v {
			o[key] = tagged(member, seq)
		}
		return o
	case []any:
		list := []any{}
		for _, element := range v {
			list = append(list, tagged(element, seq))
		}
		return list
	}
	return seq
}

func decoded(t require.TestingT, doc patch.Doc) (v any) {
	require.NoError(t, json.Unmarshal(doc, &v))
	return v
}

func encoded(t require.TestingT, v any) patch.Doc {
	text, err := json.Marshal(v)
	require.NoError(t, err)
	return canonical(t, string(text))
}

func (s *shadow) follow(t require.TestingT, change []byte, seq int64) {
	for _, step := range decoded(t, change).([]any) {
		op := step.(map[string]any)
		switch op["op"] {
		case "add":
			op["value"] = tagged(op["value"], seq)
		case "replace":
			old, ok := patch.Get(s.doc, op["path"].(string))
			require.True(t, ok)
			op["value"] = merged(op["old"], op["value"], decoded(t, old), seq)
		}
		var err error
		s.doc, err = patch.Apply(s.doc, encoded(t, []any{op}))
		require.NoError(t, err)
	}
}

// merged returns the shadow of a value that replaced another one.
func merged(before, after, was any, seq int64) any {
	if fmt.Sprintf("%#v", before) == fmt.Sprintf("%#v", after) {
		return was
	}
	switch now := after.(type) {
	case map[string]any:
		old, ok := before.(map[string]any)
		if !ok {
			break
		}
		o := map[string]any{}
		for key, member := range now {
			o[key] = tagged(member, seq)
			if _, known := old[key]; known {
				o[key] = merged(old[key], member, was.(map[string]any)[key], seq)
			}
		}
		return o
	case []any:
		old, ok := before.([]any)
		if !ok {
			break
		}
		return mergedLists(old, now, was.([]any), seq)
	}
	return tagged(after, seq)
}

func mergedLists(before, after, was []any, seq int64) []any {
	equal := func(a, b any) bool { return fmt.Sprintf("%#v", a) == fmt.Sprintf("%#v", b) }
	if n, m := len(before), len(after); n > 0 && m > 0 && equal(before[n-1], after[m-1]) {
		return append(mergedLists(before[:n-1], after[:m-1], was[:n-1], seq), was[n-1])
	}
	list := []any{}
	for i, element := range after {
		if i < len(before) {
			list = append(list, merged(before[i], element, was[i], seq))
		} else {
			list = append(list, tagged(element, seq))
		}
	}
	return list
}

func TestTheFoldEqualsANaiveModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := &life{t: t}
		var s shadow
		var now any = object(t, 4)
		for range rapid.IntRange(1, 8).Draw(t, "versions") {
			keyframe := rapid.IntRange(0, 4).Draw(t, "keyframe") == 0
			v := l.becomes(string(encoded(t, now)), func(v *history.Version) {
				if v.Seq == 1 {
					s.doc = encoded(t, tagged(now, 1))
				} else {
					s.follow(t, v.Patch, v.Seq)
				}
				if keyframe {
					v.Patch = nil
				}
			})
			require.Equal(t, string(v.Doc), string(l.fold.Doc()))
			requireShadow(t, l, s)
			next, ok := edited(t, now, 4).(map[string]any)
			if !ok {
				next = object(t, 4)
			}
			now = next
		}
	})
}

// requireShadow compares each line of a scalar with the shadow.
func requireShadow(t *rapid.T, l *life, s shadow) {
	lines, err := l.fold.Lines(true)
	require.NoError(t, err)
	scalars := 0
	var last string
	for _, line := range lines {
		was, ok := patch.Get(s.doc, line.Pointer)
		require.True(t, ok, "%q", line.Pointer)
		if was[0] == '{' || was[0] == '[' {
			continue
		}
		require.Equal(t, string(was), fmt.Sprint(line.Origin.Seq), "%s in %s, of %s", line.Pointer, l.doc, s.doc)
		if line.Pointer != last {
			scalars++
		}
		last = line.Pointer
	}
	require.Equal(t, count(decoded(t, l.doc)), scalars, "each scalar has a line")
}

func count(v any) (n int) {
	switch v := v.(type) {
	case map[string]any:
		for _, member := range v {
			n += count(member)
		}
	case []any:
		for _, element := range v {
			n += count(element)
		}
	default:
		n = 1
	}
	return n
}
