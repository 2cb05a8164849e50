package patch_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/kuberewind/kuberewind/patch"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// kubernetesSeries are versions of objects as a kube-apiserver 1.37 served them: one version a line, with
// managedFields.
var kubernetesSeries = []string{"pod", "pod-small", "deployment", "node", "event"}

func series(t testing.TB, name string) [][]byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name+".jsonl"))
	require.NoError(t, err)
	return bytes.Split(bytes.TrimSpace(text), []byte("\n"))
}

func canonical[T ~string | ~[]byte](t require.TestingT, text T) patch.Doc {
	doc, err := patch.Canonical([]byte(text))
	require.NoError(t, err)
	return doc
}

func path(t require.TestingT, text string) patch.Path {
	p, err := patch.ParsePath(text)
	require.NoError(t, err)
	return p
}

// read returns the tree of a text in which only quotes and backslashes are escaped.
func read(t require.TestingT, written []byte) tree {
	d := json.NewDecoder(bytes.NewReader(written))
	d.UseNumber()
	var v any
	require.NoError(t, d.Decode(&v))
	return toTree(t, v)
}

func toTree(t require.TestingT, v any) tree {
	switch v := v.(type) {
	case json.Number:
		return number(v)
	case string:
		return toText(t, v)
	case []any:
		elements := make([]tree, len(v))
		for i := range v {
			elements[i] = toTree(t, v[i])
		}
		return elements
	case map[string]any:
		o := object{}
		for k := range v {
			o[toText(t, k)] = toTree(t, v[k])
		}
		return o
	}
	return v
}

func toText(t require.TestingT, s string) text {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	require.NoError(t, e.Encode(s))
	quoted := bytes.TrimSpace(b.Bytes())
	return text(quoted[1 : len(quoted)-1])
}

// plain writes a tree in one way, without drawing anything.
func plain(v tree) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case text:
		return `"` + string(v) + `"`
	case []tree:
		parts := make([]string, len(v))
		for i := range v {
			parts[i] = plain(v[i])
		}
		return "[" + strings.Join(parts, ",") + "]"
	case object:
		parts := []string{}
		for k := range v {
			parts = append(parts, `"`+string(k)+`":`+plain(v[k]))
		}
		return "{" + strings.Join(parts, ",") + "}"
	}
	return fmt.Sprint(v)
}
