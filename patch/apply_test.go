package patch_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kuberewind/kuberewind/patch"
)

// Cases A.1 to A.16 come from the appendix of RFC 6902, the others from its text.
func TestApplyFollowsTheRFC(t *testing.T) {
	for name, c := range map[string]struct{ doc, ops, want string }{
		"A.1 adding a member":               {`{"foo":"bar"}`, `[{"op":"add","path":"/baz","value":"qux"}]`, `{"baz":"qux","foo":"bar"}`},
		"A.2 adding an element":             {`{"foo":["bar","baz"]}`, `[{"op":"add","path":"/foo/1","value":"qux"}]`, `{"foo":["bar","qux","baz"]}`},
		"A.3 removing a member":             {`{"baz":"qux","foo":"bar"}`, `[{"op":"remove","path":"/baz"}]`, `{"foo":"bar"}`},
		"A.4 removing an element":           {`{"foo":["bar","qux","baz"]}`, `[{"op":"remove","path":"/foo/1"}]`, `{"foo":["bar","baz"]}`},
		"A.5 replacing":                     {`{"baz":"qux","foo":"bar"}`, `[{"op":"replace","path":"/baz","value":"boo"}]`, `{"baz":"boo","foo":"bar"}`},
		"A.6 moving a value":                {`{"foo":{"bar":"baz","waldo":"fred"},"qux":{"corge":"grault"}}`, `[{"op":"move","from":"/foo/waldo","path":"/qux/thud"}]`, `{"foo":{"bar":"baz"},"qux":{"corge":"grault","thud":"fred"}}`},
		"A.7 moving an element":             {`{"foo":["all","grass","cows","eat"]}`, `[{"op":"move","from":"/foo/1","path":"/foo/3"}]`, `{"foo":["all","cows","eat","grass"]}`},
		"A.8 testing, success":              {`{"baz":"qux","foo":["a",2,"c"]}`, `[{"op":"test","path":"/baz","value":"qux"},{"op":"test","path":"/foo/1","value":2}]`, `{"baz":"qux","foo":["a",2,"c"]}`},
		"A.10 adding a nested member":       {`{"foo":"bar"}`, `[{"op":"add","path":"/child","value":{"grandchild":{}}}]`, `{"child":{"grandchild":{}},"foo":"bar"}`},
		"A.11 unknown members":              {`{"foo":"bar"}`, `[{"op":"add","path":"/baz","value":"qux","xyz":123}]`, `{"baz":"qux","foo":"bar"}`},
		"A.14 ~ escapes":                    {`{"/":9,"~1":10}`, `[{"op":"test","path":"/~01","value":10}]`, `{"/":9,"~1":10}`},
		"A.16 adding an array":              {`{"foo":["bar"]}`, `[{"op":"add","path":"/foo/-","value":["abc","def"]}]`, `{"foo":["bar",["abc","def"]]}`},
		"no operations":                     {`[1]`, ` [ ] `, `[1]`},
		"add replaces a member":             {`{"a":1}`, `[{"op":"add","path":"/a","value":2}]`, `{"a":2}`},
		"add at the end by index":           {`[1]`, `[{"op":"add","path":"/1","value":2}]`, `[1,2]`},
		"add to an empty array by index":    {`[]`, `[{"op":"add","path":"/0","value":2}]`, `[2]`},
		"add to an empty object":            {`{}`, `[{"op":"add","path":"/","value":2}]`, `{"":2}`},
		"add the root":                      {`{"a":1}`, `[{"op":"add","path":"","value":2}]`, `2`},
		"replace the root, then edit it":    {`7`, `[{"op":"replace","path":"","value":{"a":[]}},{"op":"add","path":"/a/-","value":1}]`, `{"a":[1]}`},
		"- is a member of an object":        {`{"-":1}`, `[{"op":"replace","path":"/-","value":2}]`, `{"-":2}`},
		"01 is a member of an object":       {`{"01":1}`, `[{"op":"remove","path":"/01"}]`, `{}`},
		"move to the same place":            {`{"a":1}`, `[{"op":"move","from":"/a","path":"/a"}]`, `{"a":1}`},
		"move onto the parent":              {`{"a":{"b":1},"c":2}`, `[{"op":"move","from":"/a/b","path":"/a"}]`, `{"a":1,"c":2}`},
		"move to the root":                  {`{"a":{"b":1}}`, `[{"op":"move","from":"/a","path":""}]`, `{"b":1}`},
		"moved things can be edited":        {`{"a":{"b":1}}`, `[{"op":"move","from":"/a","path":"/c"},{"op":"add","path":"/c/d","value":2}]`, `{"c":{"b":1,"d":2}}`},
		"a name that begins another":        {`{"a":{},"ab":1}`, `[{"op":"move","from":"/a","path":"/ab"}]`, `{"ab":{}}`},
		"copy is a copy":                    {`{"a":{"b":1}}`, `[{"op":"copy","from":"/a","path":"/c"},{"op":"replace","path":"/c/b","value":2},{"op":"add","path":"/a/x","value":3}]`, `{"a":{"b":1,"x":3},"c":{"b":2}}`},
		"copy of an edited value":           {`{"a":[1]}`, `[{"op":"add","path":"/a/-","value":2},{"op":"copy","from":"/a","path":"/a/-"}]`, `{"a":[1,2,[1,2]]}`},
		"copy of the root into itself":      {`{"a":1}`, `[{"op":"copy","from":"","path":"/b"}]`, `{"a":1,"b":{"a":1}}`},
		"test compares values":              {`{"a":{"b":[1,"é"],"c":null}}`, `[{"op":"test","path":"","value":{"a":{"c":null,"b":[1.0,"\u00e9"]}}}]`, `{"a":{"b":[1,"é"],"c":null}}`},
		"test of an edited value":           {`{"a":{}}`, `[{"op":"add","path":"/a/b","value":1},{"op":"test","path":"/a","value":{"b":1}}]`, `{"a":{"b":1}}`},
		"old is ignored":                    {`{"a":1}`, `[{"op":"replace","path":"/a","value":2,"old":"wrong"},{"op":"remove","path":"/a","old":3}]`, `{}`},
		"the last of repeated members":      {`{"a":1}`, `[{"op":"remove","path":"/x","op":"add","path":"/a","value":1,"\u0076alue":2}]`, `{"a":2}`},
		"any spelling":                      {`{"é\n":1}`, ` [ { "value" : 1E1 , "path" : "\/\u00e9\n" , "\u006fp" : "repl\u0061ce" } ] `, `{"é\n":10}`},
		"keys of every kind":                {`{"":{"a/b":{"m~n":{"\ud800":{"\u0000":0}}}}}`, `[{"op":"replace","path":"//a~1b/m~0n/\uD800/\u0000","value":1}]`, `{"":{"a/b":{"m~n":{"\ud800":{"\u0000":1}}}}}`},
		"keys that are not UTF-8":           {"{\"\xff\":1}", "[{\"op\":\"replace\",\"path\":\"/\xff\",\"value\":\"\xfe\"}]", "{\"\xff\":\"\xfe\"}"},
		"new members are sorted":            {`{"b":1,"d":2}`, `[{"op":"add","path":"/c","value":3},{"op":"add","path":"/a","value":4},{"op":"add","path":"/e","value":5}]`, `{"a":4,"b":1,"c":3,"d":2,"e":5}`},
		"elements from the head and middle": {`[0,1,2,3,4,5,6]`, `[{"op":"remove","path":"/0"},{"op":"remove","path":"/1"},{"op":"remove","path":"/3"},{"op":"add","path":"/1","value":9},{"op":"remove","path":"/4"}]`, `[1,9,3,4]`},
	} {
		t.Run(name, func(t *testing.T) {
			doc, ops := canonical(t, c.doc), []byte(c.ops)
			got, err := patch.Apply(doc, ops)
			require.NoError(t, err)
			require.Equal(t, c.want, string(got))
			require.Equal(t, string(canonical(t, c.doc)), string(doc), "the document is unchanged")
			require.Equal(t, c.ops, string(ops), "the patch is unchanged")
		})
	}
}

func TestApplyRejectsAPatchWithAReason(t *testing.T) {
	const missing, other = true, false
	for name, c := range map[string]struct {
		doc, ops, problem string
		notFound          bool
	}{
		"A.9 a test that fails":              {`{"baz":"qux"}`, `[{"op":"test","path":"/baz","value":"bar"}]`, `operation 0 (test "/baz"): the value differs`, other},
		"A.12 no parent":                     {`{"foo":"bar"}`, `[{"op":"add","path":"/baz/bat","value":"qux"}]`, `operation 0 (add "/baz/bat"): "/baz" is missing: path not found`, missing},
		"A.13 the last op counts":            {`{"foo":"bar"}`, `[{"op":"add","path":"/baz","value":"qux","op":"remove"}]`, `operation 0 (remove "/baz"): "/baz" is missing`, missing},
		"A.15 a number is no string":         {`{"/":9,"~1":10}`, `[{"op":"test","path":"/~01","value":"10"}]`, "the value differs", other},
		"the second operation":               {`{"a":1}`, `[{"op":"remove","path":"/a"},{"op":"remove","path":"/a"}]`, `operation 1 (remove "/a")`, missing},
		"replace of a missing member":        {`{}`, `[{"op":"replace","path":"/a~1b","value":1}]`, `"/a~1b" is missing`, missing},
		"test of null for an array":          {`[]`, `[{"op":"add","path":"/0","value":null},{"op":"test","path":"/0","value":[]}]`, "the value differs", other},
		"test of a missing member":           {`{}`, `[{"op":"test","path":"/a","value":null}]`, "is missing", missing},
		"remove beyond the end":              {`[1]`, `[{"op":"remove","path":"/1"}]`, "is missing", missing},
		"replace beyond the end":             {`[1]`, `[{"op":"replace","path":"/1","value":1}]`, "is missing", missing},
		"add beyond the end":                 {`[1]`, `[{"op":"add","path":"/2","value":1}]`, "index 2 of an array of 1", missing},
		"a huge index":                       {`[1]`, `[{"op":"add","path":"/99999999999999999999","value":1}]`, "is not an index", missing},
		"a leading zero":                     {`[1,2]`, `[{"op":"remove","path":"/01"}]`, "is not an index", missing},
		"a sign":                             {`[1,2]`, `[{"op":"remove","path":"/+1"}]`, "is not an index", missing},
		"a negative index":                   {`[1,2]`, `[{"op":"remove","path":"/-1"}]`, "is not an index", missing},
		"a name in an array":                 {`[1,2]`, `[{"op":"add","path":"/a","value":1}]`, "is not an index", missing},
		"an empty index":                     {`[1,2]`, `[{"op":"add","path":"/","value":1}]`, "is not an index", missing},
		"remove after the last element":      {`[1,2]`, `[{"op":"remove","path":"/-"}]`, "is missing", missing},
		"a path after the last element":      {`[[],[]]`, `[{"op":"add","path":"/-/0","value":1}]`, "is missing", missing},
		"into a string":                      {`{"a":"b"}`, `[{"op":"add","path":"/a/b","value":1}]`, "neither object nor array", missing},
		"into a scalar root":                 {`1`, `[{"op":"remove","path":"/a"}]`, "neither object nor array", missing},
		"remove the root":                    {`{"a":1}`, `[{"op":"remove","path":""}]`, "the whole document cannot be removed", other},
		"move into itself":                   {`{"a":{"b":{}}}`, `[{"op":"move","from":"/a","path":"/a/b/c"}]`, "into itself", other},
		"move of the root":                   {`{"a":1}`, `[{"op":"move","from":"","path":"/a"}]`, "into itself", other},
		"move of a missing member":           {`{"a":1}`, `[{"op":"move","from":"/b","path":"/a"}]`, `from: "/b" is missing`, missing},
		"move of a missing member to itself": {`{"a":1}`, `[{"op":"move","from":"/b","path":"/b"}]`, "is missing", missing},
		"copy of a missing member":           {`{"a":1}`, `[{"op":"copy","from":"/b","path":"/a"}]`, `from: "/b" is missing`, missing},
		"copy to a missing parent":           {`{"a":1}`, `[{"op":"copy","from":"/a","path":"/b/c"}]`, "is missing", missing},
		"no op":                              {`{}`, `[{"path":"/a","value":1}]`, `operation 0: "op" must be`, other},
		"an unknown op":                      {`{}`, `[{"op":"merge","path":"/a","value":1}]`, `"op" must be`, other},
		"an op that is no string":            {`{}`, `[{"op":["add"],"path":"/a","value":1}]`, `"op" must be`, other},
		"no path":                            {`{}`, `[{"op":"add","value":1}]`, `"path" is missing`, other},
		"a path that is no string":           {`{}`, `[{"op":"add","path":["a"],"value":1}]`, `"path" is not a string`, other},
		"a path without /":                   {`{}`, `[{"op":"add","path":"a","value":1}]`, `"path" does not begin with /`, other},
		"a bad escape":                       {`{}`, `[{"op":"add","path":"/~2","value":1}]`, `has a ~`, other},
		"half an escape":                     {`{}`, `[{"op":"add","path":"/a~","value":1}]`, `has a ~`, other},
		"no value":                           {`{"a":1}`, `[{"op":"replace","path":"/a","old":1}]`, `"value" is missing`, other},
		"no from":                            {`{"a":1}`, `[{"op":"copy","path":"/b"}]`, `"from" is missing`, other},
		"an operation that is no object":     {`{}`, `[[]]`, "an operation must be an object", other},
		"a patch that is no array":           {`{}`, `{"op":"add","path":"/a","value":1}`, "a patch must be an array", other},
		"a patch that is not JSON":           {`{}`, `[{"op":"add","path":"/a","value":01}]`, "patch: apply: patch: invalid JSON at byte 34", other},
		"a patch with a tail":                {`{}`, `[]]`, "invalid JSON at byte 2", other},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := patch.Apply(canonical(t, c.doc), []byte(c.ops))
			require.ErrorContains(t, err, c.problem)
			if c.notFound {
				require.ErrorIs(t, err, patch.ErrNotFound)
			} else {
				require.NotErrorIs(t, err, patch.ErrNotFound)
			}
		})
	}
	_, err := patch.Apply(patch.Doc(`{"b":1,"a":2}`), []byte("[]"))
	require.ErrorContains(t, err, "not in canonical form")
}

func TestApplyLimitsTheNestingOfTheResult(t *testing.T) {
	deep := nested("[", "", "]", 9_999)
	got, err := patch.Apply(patch.Doc(`{"a":1}`), []byte(`[{"op":"replace","path":"/a","value":`+deep+`}]`))
	require.NoError(t, err)
	require.Equal(t, `{"a":`+deep+`}`, string(got))

	_, err = patch.Apply(patch.Doc(`{"a":[]}`), []byte(`[{"op":"add","path":"/a/0","value":`+deep+`}]`))
	require.ErrorContains(t, err, "nested deeper than 10000 levels")
	_, err = patch.Apply(patch.Doc(`{"a":[],"b":`+deep+`}`), []byte(`[{"op":"move","from":"/b","path":"/a/0"}]`))
	require.ErrorContains(t, err, "nested deeper than 10000 levels")
	_, err = patch.Apply(patch.Doc(`{"a":[],"b":`+deep+`}`), []byte(`[{"op":"copy","from":"/b","path":"/a/0"}]`))
	require.ErrorContains(t, err, "nested deeper than 10000 levels")

	whole := nested("[", "", "]", 10_000)
	got, err = patch.Apply(patch.Doc(whole), []byte(`[{"op":"replace","path":"","value":`+whole+`}]`))
	require.NoError(t, err)
	require.Equal(t, whole, string(got))
}

func TestMovesCannotExceedTheLimitOfNesting(t *testing.T) {
	wrap := `{"op":"add","path":"/b","value":{}},{"op":"move","from":"/a","path":"/b/a"},{"op":"move","from":"/b","path":"/a"},`
	_, err := patch.Apply(patch.Doc(`{"a":1}`), []byte("["+strings.Repeat(wrap, 11_000)+`{"op":"test","path":"","value":1}]`))
	require.ErrorContains(t, err, "nested deeper than 10000 levels")
	got, err := patch.Apply(patch.Doc(`{"a":1}`), []byte("["+strings.Repeat(wrap, 9_999)+`{"op":"test","path":"/b","value":1}]`))
	require.ErrorIs(t, err, patch.ErrNotFound)
	require.Nil(t, got)
}

func TestCopiesCannotExceedTheLimitOfSize(t *testing.T) {
	double := `{"op":"copy","from":"","path":"/a"},{"op":"copy","from":"","path":"/b"},`
	_, err := patch.Apply(patch.Doc(`{"a":1,"b":2}`), []byte("["+strings.Repeat(double, 30)+`{"op":"test","path":"/a","value":1}]`))
	require.ErrorContains(t, err, "copies more than")
}

func TestManyOperationsOnAHugeDocumentTakeNoQuadraticTime(t *testing.T) {
	var ops, elements []string
	for i := range 10_000 {
		elements = append(elements, fmt.Sprintf(`{"name":"element-%05d","value":%d}`, i, i))
		ops = append(ops, fmt.Sprintf(`{"op":"replace","path":"/items/%d/value","value":-1}`, i), `{"op":"add","path":"/more/0","value":1}`)
	}
	for range 10_000 {
		ops = append(ops, `{"op":"remove","path":"/items/0"}`)
	}
	doc := patch.Doc(`{"items":[` + strings.Join(elements, ",") + `],"more":[]}`)
	text := []byte("[" + strings.Join(ops, ",") + "]")
	got, err := patch.Apply(doc, text)
	require.NoError(t, err)
	require.Equal(t, `{"items":[],"more":[`+strings.Repeat("1,", 9_999)+"1]}", string(got))
}

// PostgreSQL returns a jsonb with other white space and another order of members, and with numbers written out.
func TestAPatchThatWentThroughJSONBGivesTheSameDoc(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := dialect{}.tree(t, 3)
		from, to := canonical(t, plain(v)), canonical(t, plain(dialect{}.mutate(t, v)))
		ops, err := patch.Diff(from, to)
		require.NoError(t, err)
		got, err := patch.Apply(from, respelt(t, ops))
		require.NoError(t, err)
		require.Equal(t, string(to), string(got))
	})
}

// respelt spells the operations of a patch in another way, but not their values.
func respelt(t *rapid.T, ops []byte) []byte {
	var list []string
	for i := 0; ; i++ {
		op, ok := patch.Get(ops, fmt.Sprintf("/%d", i))
		if !ok {
			return []byte(" [ " + strings.Join(list, " , ") + " ] ")
		}
		var members []string
		for _, name := range rapid.Permutation([]string{"from", "op", "path", "old", "value"}).Draw(t, "order") {
			if value, ok := patch.Get(op, "/"+name); ok {
				members = append(members, fmt.Sprintf("%q: %s", name, value))
			}
		}
		list = append(list, "{"+strings.Join(members, ", ")+"}")
	}
}

// This test omits the library's differences from the RFC. The tables above cover them:
//
//   - An empty token means the container itself.
//   - An index may have a sign or leading zeros.
//   - A root can be no scalar, and move or copy do not replace it.
//   - A test for null succeeds if there is no value.
//   - A test for an array panics at a null.
//   - A value may be moved into its own replacement.
//   - Numbers are compared by their spelling.
func TestRandomPatchesApplyAsWithTheLibrary(t *testing.T) {
	applied := 0
	rapid.Check(t, func(t *rapid.T) {
		d := dialect{foreign: true}
		v := d.container(t, 3)
		doc := canonical(t, spell(t, v))
		pointers := locations(v, "")
		var list []string
		for range rapid.IntRange(1, 5).Draw(t, "operations") {
			list = append(list, d.operation(t, pointers))
		}
		ops := []byte("[" + strings.Join(list, ",") + "]")
		foreign, foreignErr := applyForeign(doc, ops)
		got, err := patch.Apply(doc, ops)
		require.Equal(t, foreignErr == nil, err == nil, "%s\n%s\nthe library: %v\nwe: %v", doc, ops, foreignErr, err)
		if err == nil {
			applied++
			require.Equal(t, string(canonical(t, foreign)), string(got), "%s\n%s", doc, ops)
		}
	})
	require.NotZero(t, applied)
}

// locations returns the pointers to all places in a tree except the root, and to some places without a value.
func locations(v tree, at string) []string {
	pointers := []string{at + "/a", at + "/0"}
	switch v := v.(type) {
	case []tree:
		pointers = append(pointers, at+"/-", fmt.Sprintf("%s/%d", at, len(v)))
		for i, e := range v {
			child := fmt.Sprintf("%s/%d", at, i)
			pointers = append(append(pointers, child), locations(e, child)...)
		}
	case object:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			child := at + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(string(k))
			pointers = append(append(pointers, child), locations(v[k], child)...)
		}
	}
	return pointers
}

func (d dialect) operation(t *rapid.T, pointers []string) string {
	pointer := rapid.SampledFrom(pointers)
	at := pointer.Draw(t, "path")
	switch name := rapid.SampledFrom([]string{"add", "remove", "replace", "move", "copy", "test"}).Draw(t, "op"); name {
	case "remove":
		return fmt.Sprintf(`{"op":"remove","path":"%s"}`, at)
	case "move", "copy":
		from := pointer.Draw(t, "from")
		if strings.HasPrefix(at, from+"/") {
			name = "copy"
		}
		return fmt.Sprintf(`{"op":"%s","path":"%s","from":"%s"}`, name, at, from)
	case "test":
		return fmt.Sprintf(`{"op":"test","path":"%s","value":%s}`, at, rapid.SampledFrom([]string{"true", "false", "{}", `""`}).Draw(t, "value"))
	default:
		return fmt.Sprintf(`{"op":"%s","path":"%s","value":%s}`, name, at, plain(d.tree(t, 1)))
	}
}
