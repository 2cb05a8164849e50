package blame_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/blame"
	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/pgtest"
	"github.com/kuberewind/kuberewind/internal/scenetest"
	"github.com/kuberewind/kuberewind/patch"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func scene(t *testing.T) *history.Record {
	t.Helper()
	database := pgtest.New(t, scenetest.Record)
	rec, err := history.Open(t.Context(), database.URL(), history.Options{})
	require.NoError(t, err)
	t.Cleanup(rec.Close)
	return rec
}

func TestTheSceneIsBlamedOnItsWriters(t *testing.T) {
	rec := scene(t)
	streams, err := rec.Streams(t.Context())
	require.NoError(t, err)
	var deployments int32
	for _, s := range streams {
		if s.Resource == "deployments" {
			deployments = s.ID
		}
	}
	var f blame.Fold
	for v, err := range rec.Versions(t.Context(), history.Query{Scope: history.Scope{Streams: []int32{deployments}, Namespace: "shop", Name: "web"}, ToSeq: 557}) {
		require.NoError(t, err)
		require.NoError(t, f.Add(&v))
	}
	lines, err := f.Lines(false)
	require.NoError(t, err)
	found := map[string]string{}
	for _, line := range lines {
		found[line.Pointer] = fmt.Sprintf("%d %s %s", line.Origin.Seq, line.Origin.Manager, strings.TrimSpace(line.Text))
	}
	for pointer, want := range map[string]string{
		"/spec/replicas":                                           "412 kubectl replicas: 5",
		"/spec/template/spec/containers/0/image":                   "522 kubectl - image: registry.example/web:v1",
		"/spec/template/spec/containers/0/name":                    "235 kubectl-client-side-apply name: web",
		"/metadata/labels/team":                                    "235 kubectl-client-side-apply team: shop",
		"/metadata/annotations/deployment.kubernetes.io~1revision": `524 kube-controller-manager deployment.kubernetes.io/revision: "3"`,
	} {
		require.Equal(t, want, found[pointer], pointer)
	}
	require.NotContains(t, found, "/metadata/managedFields")
}

// The previous version has another value there, or none; the value's own version and all later ones have this value.
// Indexes in a list mean nothing here.
func TestEachValueOfTheSceneHasItsVersion(t *testing.T) {
	rec := scene(t)
	lives := map[int64][]history.Version{}
	for v, err := range rec.Versions(t.Context(), history.Query{}) {
		require.NoError(t, err)
		lives[v.ObjectID] = append(lives[v.ObjectID], v)
	}
	compared := 0
	for _, versions := range lives {
		var f blame.Fold
		for i := range versions {
			require.NoError(t, f.Add(&versions[i]))
		}
		lines, err := f.Lines(false)
		require.NoError(t, err)
		for _, line := range lines {
			value, ok := patch.Get(f.Doc(), line.Pointer)
			require.True(t, ok, line.Pointer)
			if value[0] == '{' && len(value) > 2 || strings.Contains(string(value[0]), "[") || inList(f.Doc(), line.Pointer) {
				continue
			}
			compared++
			require.Equal(t, lastSet(versions, line.Pointer, value), line.Origin.Seq, "%s of %s", line.Pointer, f.Doc())
		}
	}
	require.Greater(t, compared, 5000)
}

func inList(doc patch.Doc, pointer string) bool {
	for i := strings.LastIndexByte(pointer, '/'); i > 0; i = strings.LastIndexByte(pointer[:i], '/') {
		if parent, _ := patch.Get(doc, pointer[:i]); parent[0] == '[' {
			return true
		}
	}
	return false
}

func lastSet(versions []history.Version, pointer string, value patch.Doc) (seq int64) {
	for i := len(versions) - 1; i >= 0; i-- {
		if was, _ := patch.Get(versions[i].Doc, pointer); !bytes.Equal(was, value) {
			return seq
		}
		seq = versions[i].Seq
	}
	return seq
}
