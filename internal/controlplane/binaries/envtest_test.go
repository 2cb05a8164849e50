package binaries

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/internal/progress"
)

func TestTheControlPlaneIsDownloadedByTheIndexOfTheTree(t *testing.T) {
	tree := newTree(t)
	source := tree.offer(archive(t, Minimal...), "")
	tree.write(releasesFile, source.index)
	var told bytes.Buffer
	dir, err := Build(t.Context(), Options{Progress: &told}, Minimal...)
	require.NoError(t, err, told.String())
	require.Contains(t, told.String(), "downloaded Kubernetes "+release+" in ")
	require.Zero(t, tree.builds())
	for _, name := range Minimal {
		requireText(t, filepath.Join(dir, name), "downloaded "+name)
		info, err := os.Stat(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o555), info.Mode().Perm())
	}
	require.NoDirExists(t, filepath.Join(dir, ".building"))

	full, err := Build(t.Context(), Options{Progress: &told}, Full...)
	require.NoError(t, err, told.String())
	require.Equal(t, dir, full)
	require.Equal(t, 3, tree.builds(), "the scheduler, the controller manager and kwok are built")
	requireText(t, filepath.Join(dir, APIServer), "downloaded "+APIServer)
}

func TestAnArchiveWithAnotherHashIsRefusedAndTheProgramsAreBuilt(t *testing.T) {
	tree := newTree(t)
	source := tree.offer(archive(t, Minimal...), strings.Repeat("0", 128))
	var told bytes.Buffer
	dir, err := Build(t.Context(), Options{Progress: &told, Index: source.url}, Minimal...)
	require.NoError(t, err, told.String())
	require.Contains(t, told.String(), "cannot download the control plane")
	require.Contains(t, told.String(), "checksum mismatch")
	require.Equal(t, 3, tree.builds())
	requireText(t, filepath.Join(dir, APIServer), "program\n")
}

func TestADownloadThatFailsIsFollowedByABuild(t *testing.T) {
	for name, index := range map[string]func(*tree) string{
		"no server":   func(*tree) string { return "http://127.0.0.1:1/index.yaml" },
		"no release":  func(tr *tree) string { return tr.serve("/", []byte("releases: {}")) },
		"no archive":  func(tr *tree) string { return tr.offer(nil, "").url },
		"no programs": func(tr *tree) string { return tr.offer(archive(tr.t), "").url },
	} {
		t.Run(name, func(t *testing.T) {
			tree := newTree(t)
			var told bytes.Buffer
			_, err := Build(t.Context(), Options{Progress: &told, Index: index(tree)}, Minimal...)
			require.NoError(t, err, told.String())
			require.Contains(t, told.String(), "cannot download the control plane")
			require.Equal(t, 3, tree.builds())
		})
	}
}

func TestAProgramThatAnArchiveLacksIsBuilt(t *testing.T) {
	tree := newTree(t)
	var told bytes.Buffer
	dir, err := Build(t.Context(), Options{Progress: &told, Index: tree.offer(archive(t, Etcd, APIServer), "").url}, Minimal...)
	require.NoError(t, err, told.String())
	require.Contains(t, told.String(), "the archive has no kubectl")
	require.Equal(t, 1, tree.builds())
	requireText(t, filepath.Join(dir, APIServer), "downloaded "+APIServer)
	requireText(t, filepath.Join(dir, Kubectl), "program\n")
}

func TestADownloadThatStandsStillIsFollowedByABuild(t *testing.T) {
	tree := newTree(t)
	released := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-released }))
	defer server.Close()
	defer close(released)
	var output bytes.Buffer
	told, stop := progress.Watch(&output)
	b := &builder{
		root: tree.root, dir: filepath.Join(tree.root, "out"), progress: told, index: server.URL,
		patience: patience{stalled: 100 * time.Millisecond, whole: time.Hour},
	}
	require.NoError(t, b.build(t.Context(), Minimal))
	stop()
	require.Contains(t, output.String(), "no data came for 100ms")
	require.Equal(t, 3, tree.builds())
}

func TestAnInterruptedDownloadIsNotFollowedByABuild(t *testing.T) {
	tree := newTree(t)
	ctx, cancel := context.WithCancel(t.Context())
	index := tree.serveBy(func(w http.ResponseWriter, _ *http.Request) { cancel(); w.WriteHeader(http.StatusServiceUnavailable) })
	_, err := Build(ctx, Options{Progress: &bytes.Buffer{}, Index: index}, Minimal...)
	require.ErrorIs(t, err, context.Canceled)
	require.Zero(t, tree.builds())
}

func TestThePinnedReleaseIsOfTheVersionThatIsBuilt(t *testing.T) {
	index, err := os.ReadFile(filepath.Join("../../..", releasesFile))
	require.NoError(t, err)
	for _, platform := range []string{"linux-amd64", "linux-arm64", "darwin-amd64", "darwin-arm64"} {
		require.Regexp(t, fmt.Sprintf(`envtest-v%s-%s.tar.gz:\n +hash: [0-9a-f]{128}\n +selfLink: https://`, release, platform), string(index))
	}
	built, err := os.ReadFile("../../../test/controlplane/go.mod")
	require.NoError(t, err)
	minor := release[:strings.LastIndex(release, ".")]
	require.Contains(t, string(built), "k8s.io/kubernetes v"+minor+".")
}

// source is an index and an archive that are served.
type source struct{ url, index string }

// offer serves an archive and an index of it. An empty hash is the right one, no archive is not found.
func (tr *tree) offer(archive []byte, hash string) source {
	tr.t.Helper()
	if hash == "" {
		hash = fmt.Sprintf("%x", sha512.Sum512(archive))
	}
	name := fmt.Sprintf("envtest-v%s-%s-%s.tar.gz", release, runtime.GOOS, runtime.GOARCH)
	index := fmt.Sprintf("releases:\n  v%s:\n    %s:\n      hash: %s\n      selfLink: %s\n", release, name, hash, tr.serve("/"+name, archive))
	return source{url: tr.serve("/index.yaml", []byte(index)), index: index}
}

func (tr *tree) serve(path string, content []byte) (url string) {
	return tr.serveBy(func(w http.ResponseWriter, r *http.Request) {
		if content == nil {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(content)
	}) + path
}

func (tr *tree) serveBy(handler http.HandlerFunc) (url string) {
	server := httptest.NewServer(handler)
	tr.t.Cleanup(server.Close)
	return server.URL
}

// archive has the named programs in the folder in which the published ones have them.
func archive(t *testing.T, names ...string) []byte {
	t.Helper()
	var packed bytes.Buffer
	zipper := gzip.NewWriter(&packed)
	writer := tar.NewWriter(zipper)
	for _, name := range names {
		text := "downloaded " + name
		require.NoError(t, writer.WriteHeader(&tar.Header{Name: "controller-tools/envtest/" + name, Mode: 0o755, Size: int64(len(text))}))
		_, err := writer.Write([]byte(text))
		require.NoError(t, err)
	}
	require.NoError(t, writer.Close())
	require.NoError(t, zipper.Close())
	return packed.Bytes()
}

func requireText(t *testing.T, path, want string) {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, want, string(text))
}
