package migrations_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kuberewind/kuberewind/patch"
)

// applied returns the result of a patch in SQL, or the error of the patch.
func applied(t require.TestingT, conn *pgx.Conn, doc, change string) (result string, failed *pgconn.PgError) {
	// A context of its own: a property's context is not the test's.
	err := conn.QueryRow(contextOf(t), "SELECT kuberewind.apply_patch($1::text::jsonb, $2::text::jsonb)::text", doc, change).Scan(&result)
	if err != nil {
		require.ErrorAs(t, err, &failed)
		require.Equal(t, "22000", failed.Code, "%s of %s with %s", failed.Message, doc, change)
	}
	return result, failed
}

// sameAsGo requires that SQL returns the result of package patch, or an error if package patch does.
func sameAsGo(t require.TestingT, conn *pgx.Conn, doc, change string) {
	canonical, err := patch.Canonical([]byte(doc))
	require.NoError(t, err)
	want, err := patch.Apply(canonical, []byte(change))
	got, failed := applied(t, conn, doc, change)
	if err != nil {
		require.NotNil(t, failed, "%s with %s: Go says %v, SQL gives %s", doc, change, err, got)
		return
	}
	require.Nil(t, failed, "%s with %s: Go gives %s", doc, change, want)
	result, err := patch.Canonical([]byte(got))
	require.NoError(t, err)
	require.Equal(t, string(want), string(result), "%s with %s", doc, change)
}

func TestApplyPatchDoesAllOperationsOfRFC6902(t *testing.T) {
	_, conn := migrated(t)
	for _, c := range []struct{ doc, change, want string }{
		{`{"a": 1}`, `[]`, `{"a": 1}`},
		{`{"a": 1}`, `[{"op":"replace","path":"/a","old":1,"value":null}]`, `{"a": null}`},
		{`{"a": null}`, `[{"op":"replace","path":"/a","value":2}]`, `{"a": 2}`},
		{`{"a": null}`, `[{"op":"remove","path":"/a"}]`, `{}`},
		{`{}`, `[{"op":"add","path":"/a","value":null}]`, `{"a": null}`},
		{`{}`, `[{"op":"add","path":"/","value":1},{"op":"add","path":"/~1~01","value":2}]`, `{"": 1, "/~1": 2}`},
		{`{"0": "a", "-1": "b", "01": "c", "-": "d"}`, `[{"op":"replace","path":"/0","value":1},{"op":"remove","path":"/-1"},{"op":"replace","path":"/01","value":2},{"op":"add","path":"/-","value":3}]`, `{"-": 3, "0": 1, "01": 2}`},
		{`[1, 2]`, `[{"op":"add","path":"/2","value":[3]},{"op":"add","path":"/0","value":0},{"op":"add","path":"/-","value":{}}]`, `[0, 1, 2, [3], {}]`},
		{`{"a": []}`, `[{"op":"add","path":"/a/-","value":1},{"op":"add","path":"/a/0","value":0}]`, `{"a": [0, 1]}`},
		{`{"a": [[1], [2]]}`, `[{"op":"remove","path":"/a/1/0"},{"op":"add","path":"/a/1/-","value":3}]`, `{"a": [[1], [3]]}`},
		{`{"a": 1}`, `[{"op":"replace","path":"","value":5},{"op":"add","path":"","value":[1]},{"op":"test","path":"/0","value":1.0}]`, `[1]`},
		{`{"a": {"b": 1}, "c": [2]}`, `[{"op":"move","from":"/a/b","path":"/c/0"},{"op":"copy","from":"/c","path":"/a/d"},{"op":"move","from":"/c","path":"/c"}]`, `{"a": {"d": [1, 2]}, "c": [1, 2]}`},
		{`{"a": 1}`, `[{"op":"copy","from":"","path":"/b"}]`, `{"a": 1, "b": {"a": 1}}`},
	} {
		got, failed := applied(t, conn, c.doc, c.change)
		require.Nil(t, failed, c.change)
		require.JSONEq(t, c.want, got, c.change)
		sameAsGo(t, conn, c.doc, c.change)
	}
	require.True(t, one[bool](t, conn, `SELECT kuberewind.apply_patch('{}', NULL) IS NULL AND kuberewind.apply_patch(NULL, '[]') IS NULL`))
}

func TestApplyPatchRejectsAnOperationThatDoesNotApplyAndNamesIt(t *testing.T) {
	_, conn := migrated(t)
	for _, c := range []struct{ doc, change string }{
		{`{}`, `{}`},
		{`{}`, `[5]`},
		{`{}`, `[{"op":"remove"}]`},
		{`{}`, `[{"op":"remove","path":5}]`},
		{`{"a":1}`, `[{"op":"remove","path":"a"}]`},
		{`{"~":1}`, `[{"op":"remove","path":"/~"}]`},
		{`{"~2":1}`, `[{"op":"remove","path":"/~2"}]`},
		{`{"a":1}`, `[{"op":"rename","path":"/a"}]`},
		{`{"a":1}`, `[{"op":"replace","path":"/a"}]`},
		{`{"a":1}`, `[{"op":"replace","path":"/b","value":1}]`},
		{`{"a":1}`, `[{"op":"remove","path":"/b"}]`},
		{`{"a":1}`, `[{"op":"remove","path":""}]`},
		{`{"a":1}`, `[{"op":"add","path":"/b/c","value":1}]`},
		{`{"a":1}`, `[{"op":"add","path":"/a/c","value":1}]`},
		{`{"a":1}`, `[{"op":"add","path":"/a/0","value":1}]`},
		{`{"a":1}`, `[{"op":"test","path":"/a","value":2}]`},
		{`{"a":1}`, `[{"op":"test","path":"/b","value":null}]`},
		{`{"a":{"b":1}}`, `[{"op":"move","from":"/a","path":"/a/b"}]`},
		{`{"a":1}`, `[{"op":"move","from":"/b","path":"/c"}]`},
		{`{"a":1}`, `[{"op":"copy","path":"/c"}]`},
		{`[1,2]`, `[{"op":"add","path":"/3","value":1}]`},
		{`[1,2]`, `[{"op":"add","path":"/-1","value":1}]`},
		{`[1,2]`, `[{"op":"add","path":"/00","value":1}]`},
		{`[1,2]`, `[{"op":"add","path":"/x","value":1}]`},
		{`[1,2]`, `[{"op":"add","path":"/99999999999","value":1}]`},
		{`[1,2]`, `[{"op":"replace","path":"/2","value":1}]`},
		{`[1,2]`, `[{"op":"replace","path":"/-","value":1}]`},
		{`[1,2]`, `[{"op":"replace","path":"/-1","value":1}]`},
		{`[1,2]`, `[{"op":"remove","path":"/-1"}]`},
		{`[1,2]`, `[{"op":"remove","path":"/+1"}]`},
		{`[1,2]`, `[{"op":"remove","path":"/ 1"}]`},
		{`[1,2]`, `[{"op":"remove","path":"/01"}]`},
		{`[[1],2]`, `[{"op":"remove","path":"/-2/0"}]`},
		{`5`, `[{"op":"replace","path":"/0","value":1}]`},
		{`5`, `[{"op":"remove","path":"/0"}]`},
		{`5`, `[{"op":"add","path":"/0","value":1}]`},
		{`5`, `[{"op":"copy","from":"/0","path":""}]`},
	} {
		_, failed := applied(t, conn, c.doc, c.change)
		require.NotNil(t, failed, "%s with %s", c.doc, c.change)
		sameAsGo(t, conn, c.doc, c.change)
	}
	_, failed := applied(t, conn, `{"a":1}`, `[{"op":"remove","path":"/a"},{"op":"replace","path":"/a","value":2}]`)
	require.Equal(t, "operation 2 of the patch does not apply: replace /a: there is no such value", failed.Message)
}

// anyJSON draws values whose keys look like places in arrays, and whose arrays may be empty.
func anyJSON() *rapid.Generator[any] {
	key := rapid.SampledFrom([]string{"", "a", "b", "0", "1", "-1", "01", "-", "~", "/", "~1", "a/b", " 1", "名"})
	scalar := rapid.OneOf(
		rapid.Just[any](nil), rapid.Just[any](true), rapid.Just[any]("text"), rapid.Just[any](""), rapid.Map(rapid.IntRange(-3, 3), func(n int) any { return n }),
		rapid.SampledFrom([]any{json.Number("1.50"), json.Number("1e3"), json.Number("123456789012345678901234567890")}),
	)
	value := scalar
	for range 3 {
		inner := value
		value = rapid.OneOf(scalar,
			rapid.Map(rapid.SliceOfN(inner, 0, 3), func(s []any) any { return s }),
			rapid.Map(rapid.MapOfN(key, inner, 0, 3), func(m map[string]any) any { return m }))
	}
	return value
}

func text(t require.TestingT, value any) string {
	out, err := json.Marshal(value)
	require.NoError(t, err)
	return string(out)
}

func TestApplyPatchDoesTheSameAsPackagePatch(t *testing.T) {
	_, conn := migrated(t)
	document := anyJSON()
	token := rapid.SampledFrom([]string{"", "a", "b", "0", "1", "2", "-1", "01", "-", "~0", "~1", "~01", "a~1b", " 1", "~", "名"})
	pointer := rapid.Map(rapid.SliceOfN(token, 0, 3), func(tokens []string) string {
		if len(tokens) == 0 {
			return ""
		}
		return "/" + strings.Join(tokens, "/")
	})
	operation := rapid.Custom(func(t *rapid.T) map[string]any {
		op := map[string]any{"op": rapid.SampledFrom([]string{"add", "remove", "replace", "move", "copy", "test"}).Draw(t, "op"), "path": pointer.Draw(t, "path")}
		switch op["op"] {
		case "add", "replace", "test":
			op["value"] = document.Draw(t, "value")
		case "move", "copy":
			op["from"] = pointer.Draw(t, "from")
		}
		return op
	})
	t.Run("random patches", rapid.MakeCheck(func(r *rapid.T) {
		doc := text(r, document.Draw(r, "doc"))
		sameAsGo(r, conn, doc, text(r, rapid.SliceOfN(operation, 1, 3).Draw(r, "patch")))
	}))
	t.Run("patches between documents", rapid.MakeCheck(func(r *rapid.T) {
		from, err := patch.Canonical([]byte(text(r, document.Draw(r, "from"))))
		require.NoError(r, err)
		to, err := patch.Canonical([]byte(text(r, document.Draw(r, "to"))))
		require.NoError(r, err)
		change, err := patch.Diff(from, to)
		require.NoError(r, err)
		got, failed := applied(r, conn, string(from), string(change))
		require.Nil(r, failed, fmt.Sprint(failed))
		require.JSONEq(r, string(to), got)
	}))
}

// contextOf returns the context of a test or of one round of a property.
func contextOf(t require.TestingT) context.Context {
	return t.(interface{ Context() context.Context }).Context()
}
