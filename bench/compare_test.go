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

import (
	"fmt"
	"os"
	"testing"
)

func BenchmarkCount(b *testing.B) {
	for b.Loop() {
	}
	b.ReportMetric(REVISION, "revision")
	order, err := os.OpenFile(os.Getenv("ORDER"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		b.Fatal(err)
	}
	fmt.Fprintln(order, "PACKAGE REVISION")
	order.Close()
}
`

// git runs git in the folder of the test.
func git(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Env = append(os.Environ(), "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	return string(out)
}

// inTwoRevisions makes a repository with the packages p and q in two revisions, and enters it.
func inTwoRevisions(t *testing.T) *comparison {
	t.Helper()
	t.Chdir(t.TempDir())
	git(t, "init", "-q")
	require.NoError(t, os.WriteFile("go.mod", []byte("module counted\n\ngo 1.26\n"), 0o600))
	for _, revision := range []string{"1", "2"} {
		for _, p := range []string{"p", "q"} {
			require.NoError(t, os.MkdirAll(p, 0o755))
			text := strings.NewReplacer("REVISION", revision, "PACKAGE", p).Replace(counted)
			require.NoError(t, os.WriteFile(filepath.Join(p, "count_test.go"), []byte(text), 0o600))
		}
		git(t, "add", ".")
		git(t, "commit", "-q", "-m", revision)
	}
	return &comparison{
		revisions: [2]string{"HEAD~1", "HEAD"}, packages: []string{"./p", "./q", "./later"}, pattern: "Count", duration: "1x", count: 2,
		stat: []string{"sh", "-c", `for side; do echo "${side%%=*}"; grep -o '[0-9.]* revision' "${side#*=}"; done`, "stat"}, log: t.Output(),
	}
}

func TestTwoRevisionsRunInTurnAndNothingIsLeft(t *testing.T) {
	c := inTwoRevisions(t)
	order := filepath.Join(t.TempDir(), "order")
	t.Setenv("ORDER", order)
	var out bytes.Buffer
	require.NoError(t, c.run(t.Context(), &out))
	require.Equal(t, "old\n"+strings.Repeat("1.000 revision\n", 4)+"new\n"+strings.Repeat("2.000 revision\n", 4), out.String())
	ran, err := os.ReadFile(order)
	require.NoError(t, err)
	require.Equal(t, "p 1\np 2\nq 1\nq 2\n"+"p 2\np 1\nq 2\nq 1\n", string(ran), "package by package, and the other side first in every other turn")
	require.Equal(t, 1, strings.Count(git(t, "worktree", "list"), "\n"))

	c.packages = []string{"./later"}
	require.ErrorContains(t, c.run(t.Context(), &out), "none of [./later]")
	require.Equal(t, 1, strings.Count(git(t, "worktree", "list"), "\n"))
}

func TestAWorktreeThatWasNotMadeToTheEndIsNotLeft(t *testing.T) {
	c := inTwoRevisions(t)
	program, err := exec.LookPath("git")
	require.NoError(t, err)
	// It is killed while it makes a worktree. The entry is there and locked, but has no files.
	bin := t.TempDir()
	script := "#!/bin/sh\n" + program + ` "$@" || exit
if [ "$2" = add ]; then echo initializing >.git/worktrees/old/locked; rm -r "$4"; kill -9 $$; fi
`
	require.NoError(t, os.WriteFile(filepath.Join(bin, "git"), []byte(script), 0o700))
	t.Setenv("PATH", bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
	err = c.run(t.Context(), t.Output())
	require.ErrorContains(t, err, "signal: killed")
	require.NotContains(t, err.Error(), "worktree remove")
	require.Equal(t, 1, strings.Count(git(t, "worktree", "list"), "\n"))

	c.revisions[0] = "no-such-revision"
	err = c.run(t.Context(), t.Output())
	require.ErrorContains(t, err, "no-such-revision")
	require.NotContains(t, err.Error(), "worktree remove", "what was never made is not missed")
}
