package binaries

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

func TestMissingProgramsAreNotFoundAndTheErrorNamesTheMakeTarget(t *testing.T) {
	newTree(t)
	_, err := Find(Minimal...)
	require.ErrorIs(t, err, ErrMissing)
	require.ErrorContains(t, err, "`make control-plane`")
	_, err = Find(Full...)
	require.ErrorContains(t, err, "`make control-plane-full`")
}

func TestAFolderThatTheUserNamesIsUsedAsItIs(t *testing.T) {
	newTree(t)
	dir := t.TempDir()
	t.Setenv(overrideVariable, dir)
	_, err := Find(Etcd)
	require.ErrorIs(t, err, ErrMissing)
	require.ErrorContains(t, err, "holds no etcd")
	_, err = Build(t.Context(), Options{Progress: io.Discard, Index: NoDownload}, Etcd)
	require.ErrorIs(t, err, ErrMissing, "nothing is built into it")

	require.NoError(t, os.WriteFile(filepath.Join(dir, Etcd), nil, 0o755))
	found, err := Find(Etcd)
	require.NoError(t, err)
	require.Equal(t, dir, found)
}

func TestOutsideTheSourceTreeTheErrorSaysWhatToDo(t *testing.T) {
	t.Setenv(overrideVariable, "")
	t.Chdir(t.TempDir())
	_, err := Find(Etcd)
	require.ErrorContains(t, err, overrideVariable)
}

func TestABuiltProgramIsFoundAndNotBuiltAgain(t *testing.T) {
	tree := newTree(t)
	var progress bytes.Buffer
	dir, err := Build(t.Context(), Options{Progress: &progress, Index: NoDownload}, Minimal...)
	require.NoError(t, err)
	require.Contains(t, progress.String(), "[3/3] built kubectl in ")
	require.Equal(t, 3, tree.builds())
	for _, name := range Minimal {
		require.FileExists(t, filepath.Join(dir, name))
	}
	require.NoDirExists(t, filepath.Join(dir, ".building"))

	progress.Reset()
	again, err := Build(t.Context(), Options{Progress: &progress, Index: NoDownload}, Minimal...)
	require.NoError(t, err)
	require.Equal(t, dir, again)
	require.Empty(t, progress.String())
	require.Equal(t, 3, tree.builds())

	full, err := Build(t.Context(), Options{Progress: &progress, Index: NoDownload}, Full...)
	require.NoError(t, err)
	require.Equal(t, dir, full)
	require.Equal(t, 6, tree.builds(), "only what was missing")
	stages, err := os.ReadFile(filepath.Join(full, KwokStages))
	require.NoError(t, err)
	require.Equal(t, "---\nkind: Something\nkind: Stage\nmetadata: {}\n", string(stages))
	found, err := Find(Full...)
	require.NoError(t, err)
	require.Equal(t, dir, found)
}

func TestOtherSourcesAreBuiltElsewhere(t *testing.T) {
	tree := newTree(t)
	first, err := Build(t.Context(), Options{Progress: io.Discard, Index: NoDownload}, Etcd)
	require.NoError(t, err)
	tree.write("test/controlplane/go.sum", "another sum\n")
	_, err = Find(Etcd)
	require.ErrorIs(t, err, ErrMissing)
	second, err := Build(t.Context(), Options{Progress: io.Discard, Index: NoDownload}, Etcd)
	require.NoError(t, err)
	require.NotEqual(t, first, second)
	require.FileExists(t, filepath.Join(first, Etcd))
}

func TestTwoBuildersAtOnceBuildOnce(t *testing.T) {
	tree := newTree(t)
	var builders errgroup.Group
	for range 4 {
		builders.Go(func() error {
			_, err := Build(t.Context(), Options{Progress: io.Discard, Index: NoDownload}, Minimal...)
			return err
		})
	}
	require.NoError(t, builders.Wait())
	require.Equal(t, 3, tree.builds())
}

func TestAFailedBuildRemovesItsFilesAndCanBeRepeated(t *testing.T) {
	tree := newTree(t)
	tree.write("fail", "kubectl")
	var progress bytes.Buffer
	_, err := Build(t.Context(), Options{Progress: &progress, Index: NoDownload}, Minimal...)
	require.ErrorContains(t, err, "building kubectl: go build in test/controlplane: exit status 1")
	require.Contains(t, progress.String(), "does not compile", "what the go command says is shown")
	require.NotContains(t, progress.String(), "one", "a package is counted, not shown")
	_, err = Find(Kubectl)
	require.ErrorIs(t, err, ErrMissing)
	tree.write("fail", "nothing")
	_, err = Build(t.Context(), Options{Progress: &progress, Index: NoDownload}, Minimal...)
	require.NoError(t, err)
	require.Equal(t, 4, tree.builds(), "what was built before the failure is kept")
}

func TestAnUnknownProgramIsAnError(t *testing.T) {
	newTree(t)
	_, err := Build(t.Context(), Options{Progress: io.Discard, Index: NoDownload}, "kubelet")
	require.ErrorContains(t, err, "no program of that name")
}

func TestTheLinkerGetsTheVersion(t *testing.T) {
	flags := versionFlags("v1.37.1")
	require.Contains(t, flags, "-X k8s.io/component-base/version.gitVersion=v1.37.1")
	require.Contains(t, flags, "-X k8s.io/component-base/version.gitMajor=1")
	require.Contains(t, flags, "-X k8s.io/component-base/version.gitMinor=37")
}

// tree is a source tree with a go command that writes down what it is asked to build.
type tree struct {
	t    *testing.T
	root string
}

func newTree(t *testing.T) *tree {
	t.Helper()
	tree := &tree{t: t, root: t.TempDir()}
	tree.write("go.mod", "module "+modulePath+"\n")
	for _, source := range sources {
		tree.write(source, "")
	}
	// setup-envtest is the real one.
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join("../../../test/envtest", name))
		require.NoError(t, err)
		tree.write("test/envtest/"+name, string(text))
	}
	tree.write("kwok/kustomize/stage/pod/fast/one.yaml", "kind: Something\nkind: Stage\nmetadata: {}\n")
	tree.write("kwok/kustomize/stage/pod/fast/kustomization.yaml", "kind: Kustomization\n")
	tree.write("fail", "nothing")
	tree.write("bin/go", fakeGo)
	require.NoError(t, os.Chmod(filepath.Join(tree.root, "bin/go"), 0o755))
	realGo, err := exec.LookPath("go")
	require.NoError(t, err)
	t.Setenv("REAL_GO", realGo)
	t.Setenv("PATH", filepath.Join(tree.root, "bin")+":"+os.Getenv("PATH"))
	t.Setenv("FAKE_ROOT", tree.root)
	t.Setenv(overrideVariable, "")
	t.Setenv(cacheVariable, filepath.Join(tree.root, "cache"))
	t.Chdir(filepath.Join(tree.root, "test"))
	return tree
}

const fakeGo = `#!/bin/sh
case "$*" in *tools/setup-envtest) exec "$REAL_GO" "$@" ;; esac
case "$1 $2" in
"list -trimpath") echo one; echo two ;;
"list -m") case "$*" in *Version*) echo v1.37.1 ;; *) echo "$FAKE_ROOT/kwok" ;; esac ;;
"build -trimpath")
	echo "$*" >>"$FAKE_ROOT/builds"
	echo one >&2
	while [ "$1" != -o ]; do shift; done
	echo half >"$2"
	case "$2" in */"$(cat "$FAKE_ROOT/fail")") echo "does not compile" >&2; exit 1 ;; esac
	echo program >"$2" ;;
esac
`

func (tr *tree) write(path, text string) {
	tr.t.Helper()
	path = filepath.Join(tr.root, path)
	require.NoError(tr.t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(tr.t, os.WriteFile(path, []byte(text), 0o644))
}

// builds counts how many programs the go command was asked for.
func (tr *tree) builds() int {
	tr.t.Helper()
	text, err := os.ReadFile(filepath.Join(tr.root, "builds"))
	if !errors.Is(err, fs.ErrNotExist) {
		require.NoError(tr.t, err)
	}
	return strings.Count(string(text), "\n")
}
