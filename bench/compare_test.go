package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const counted = `package counted

import "testing"

func BenchmarkCount(b *testing.B) {
	for b.Loop() {
	}
	b.ReportMetric(REVISION, "revision")
}
`

func TestTwoRevisionsRunInTurnAndNothingIsLeft(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	git := func(args ...string) string {
		cmd := exec.Command("git", args...)
		cmd.Env = append(os.Environ(), "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
		return string(out)
	}
	git("init", "-q")
	require.NoError(t, os.WriteFile("go.mod", []byte("module counted\n\ngo 1.26\n"), 0o600))
	for _, revision := range []string{"1", "2"} {
		require.NoError(t, os.MkdirAll("p", 0o755))
		require.NoError(t, os.WriteFile(filepath.Join("p", "count_test.go"), []byte(strings.Replace(counted, "REVISION", revision, 1)), 0o600))
		git("add", ".")
		git("commit", "-q", "-m", revision)
	}
	c := &comparison{
		revisions: [2]string{"HEAD~1", "HEAD"}, packages: []string{"./p", "./later"}, pattern: "Count", duration: "1x", count: 2,
		stat: []string{"sh", "-c", `for side; do echo "${side%%=*}"; grep -o '[0-9.]* revision' "${side#*=}"; done`, "stat"}, log: t.Output(),
	}
	var out bytes.Buffer
	require.NoError(t, c.run(t.Context(), &out))
	require.Equal(t, "old\n1.000 revision\n1.000 revision\nnew\n2.000 revision\n2.000 revision\n", out.String())
	require.Equal(t, 1, strings.Count(git("worktree", "list"), "\n"))

	c.packages = []string{"./later"}
	require.ErrorContains(t, c.run(t.Context(), &out), "none of [./later]")
	require.Equal(t, 1, strings.Count(git("worktree", "list"), "\n"))
}
