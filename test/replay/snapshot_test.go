package replay_test

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

type list struct {
	Kind     string
	Metadata struct{ Annotations map[string]string }
	Items    []unstructured.Unstructured
}

// aSnapshot goes from one cluster over the record into another.
func aSnapshot(t *testing.T, c *cluster) {
	t.Run("as it was served in each format", func(t *testing.T) { snapshotFormats(t, c.in(t)) })
	t.Run("applied to a fresh cluster", func(t *testing.T) { applySnapshot(t, c.in(t)) })
}

func snapshotFormats(t *testing.T, c *cluster) {
	var seq string
	require.NoError(t, c.pool.QueryRow(t.Context(), `SELECT 'seq:' || seq FROM kuberewind.record_heads`).Scan(&seq))
	dir := t.TempDir()
	for _, output := range []string{"list.yaml", "list.json", "files", "all.tar", "all.tar.zst", "all.tgz"} {
		done := c.replay("snapshot", "--at", seq, "-o", filepath.Join(dir, output))
		require.Zero(t, done.code, done.stderr)
		require.Empty(t, done.stdout)
		require.Contains(t, done.stderr, "the values of 1 Secret are keyed hashes")
	}
	asJSON, asYAML := readList(t, filepath.Join(dir, "list.json")), readList(t, filepath.Join(dir, "list.yaml"))
	require.Equal(t, asJSON.Items, asYAML.Items)
	require.Greater(t, len(asJSON.Items), 100)
	require.Equal(t, asJSON.Items, sorted(readFiles(t, filepath.Join(dir, "files"))))
	require.Equal(t, asJSON.Items, sorted(readTar(t, filepath.Join(dir, "all.tar.zst"))))
	require.FileExists(t, filepath.Join(dir, "files", "rbac.authorization.k8s.io", "roles", "shop", "reader%3aodd.yaml"))

	var manifest struct {
		Seq       int64
		Cluster   string
		Objects   int
		Resources map[string]int
	}
	text, err := os.ReadFile(filepath.Join(dir, "files", "MANIFEST.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &manifest))
	require.Equal(t, len(asJSON.Items), manifest.Objects)
	require.Equal(t, seq, "seq:"+json.Number(jsonOf(t, manifest.Seq)).String())
	require.Equal(t, "test", manifest.Cluster)
	require.Equal(t, 4, manifest.Resources["pods"])
	require.NoError(t, json.Unmarshal([]byte(asJSON.Metadata.Annotations["kuberewind/manifest"]), &manifest))

	served, err := c.maker.Resource(schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, "").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	var recorded []unstructured.Unstructured
	for _, o := range asJSON.Items {
		if o.GetKind() == "Pod" {
			recorded = append(recorded, o)
		}
	}
	require.Equal(t, sorted(served.Items), sorted(recorded))

	again := c.replay("snapshot", "--at", seq, "-o", filepath.Join(dir, "files"))
	require.Equal(t, 1, again.code)
	require.Contains(t, again.stderr, "is not empty")
	again = c.replay("snapshot", "--at", seq, "-o", filepath.Join(dir, "list.yaml"))
	require.Equal(t, 1, again.code)
	require.Contains(t, again.stderr, "--force")
	part := c.replay("snapshot", "deployments,cm", "-n", "shop", "--at", seq, "--format", "json")
	require.Zero(t, part.code, part.stderr)
	var l list
	require.NoError(t, json.Unmarshal([]byte(part.stdout), &l))
	require.Len(t, l.Items, 2)
	left, err := filepath.Glob(filepath.Join(dir, ".*"))
	require.NoError(t, err)
	require.Empty(t, left)
}

func applySnapshot(t *testing.T, c *cluster) {
	dir := filepath.Join(t.TempDir(), "apply")
	done := c.replay("snapshot", "--at", "now", "--for-apply", "--hashed-secrets", "-o", dir)
	require.Zero(t, done.code, done.stderr)
	require.Contains(t, done.stderr, "Node, which the cluster makes by itself")

	fresh := startCluster(t)
	for _, part := range []string{"1-definitions", "2-objects"} {
		applied := fresh.kubectl("apply", "--server-side", "-R", "-f", filepath.Join(dir, part))
		require.Zero(t, applied.code, applied.stderr)
		if part == "1-definitions" {
			fresh.kubectl("wait", "--for=condition=established", "crd", "--all")
		}
	}
	for _, question := range []string{
		"deploy,sts,ds,cronjobs -n shop -o name", "pods,cm,secrets,sa,svc -n shop -o name", "widgets -n shop -o jsonpath={.items[*].spec}",
		"deploy web -n shop -o jsonpath={.spec}", "ingresses,pdb,hpa,pv -A -o name",
	} {
		was := c.replay(append([]string{"get", "-q"}, strings.Fields(question)...)...)
		is := fresh.kubectl(append([]string{"get"}, strings.Fields(question)...)...)
		require.Equal(t, without(was.stdout, "pod/done"), is.stdout, question)
	}
	stream := c.replay("snapshot", "-n", "shop", "--for-apply")
	require.Zero(t, stream.code, stream.stderr)
	require.Contains(t, stream.stderr, "Secret, whose values are hashes")
	require.NotContains(t, stream.stdout, "resourceVersion")
	require.NotContains(t, stream.stdout, "managedFields")
	path := filepath.Join(t.TempDir(), "list.yaml")
	require.NoError(t, os.WriteFile(path, []byte(stream.stdout), 0o600))
	applied := fresh.kubectl("apply", "--server-side", "-f", path)
	require.Zero(t, applied.code, applied.stderr)
}

func without(text, line string) string { return strings.ReplaceAll(text, line+"\n", "") }

func jsonOf(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	require.NoError(t, err)
	return string(text)
}

func readList(t *testing.T, path string) list {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	var l list
	require.NoError(t, yaml.Unmarshal(text, &l))
	require.Equal(t, "List", l.Kind)
	l.Items = sorted(l.Items)
	return l
}

func readFiles(t *testing.T, dir string) []unstructured.Unstructured {
	t.Helper()
	var all []unstructured.Unstructured
	require.NoError(t, filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".yaml" {
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			all = append(all, parse(t, text))
		}
		return err
	}))
	return all
}

func readTar(t *testing.T, path string) []unstructured.Unstructured {
	t.Helper()
	file, err := os.Open(path)
	require.NoError(t, err)
	defer func() { _ = file.Close() }()
	plain, err := zstd.NewReader(file)
	require.NoError(t, err)
	defer plain.Close()
	var all []unstructured.Unstructured
	for archive := tar.NewReader(plain); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err)
		text, err := io.ReadAll(archive)
		require.NoError(t, err)
		if filepath.Ext(header.Name) == ".yaml" {
			all = append(all, parse(t, text))
		}
	}
}

func parse(t *testing.T, text []byte) unstructured.Unstructured {
	t.Helper()
	var o unstructured.Unstructured
	require.NoError(t, yaml.Unmarshal(text, &o))
	return o
}

func sorted(all []unstructured.Unstructured) []unstructured.Unstructured {
	slices.SortFunc(all, func(a, b unstructured.Unstructured) int {
		return strings.Compare(string(a.GetUID()), string(b.GetUID()))
	})
	return all
}
