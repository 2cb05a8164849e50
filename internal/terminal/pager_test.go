package terminal_test

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creack/pty"
	"github.com/stretchr/testify/require"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kuberewind/kuberewind/internal/pgtest"
	"github.com/kuberewind/kuberewind/internal/replay"
	"github.com/kuberewind/kuberewind/internal/replay/signals"
	"github.com/kuberewind/kuberewind/internal/scenetest"
	"github.com/kuberewind/kuberewind/internal/terminal"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// scene makes a database with the record of a shop.
func scene(t *testing.T) {
	t.Helper()
	database := pgtest.New(t, scenetest.Record)
	t.Setenv("REPLAY_DATABASE", database.URL())
	t.Setenv("KUBECONFIG", t.TempDir()+"/none")
}

// pager makes a shell script the program's pager, and returns the file to which the script can write.
func pager(t *testing.T, script string) (file string) {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "pager")
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o700))
	t.Setenv("REPLAY_PAGER", path)
	t.Setenv("PAGED", filepath.Join(dir, "paged"))
	return filepath.Join(dir, "paged")
}

// A person is a user at a terminal of 80 columns and 24 rows.
type person struct {
	screen *os.File // the output of the program
	seen   chan string
}

func newPerson(t *testing.T, onOutput func(string)) *person {
	t.Helper()
	eyes, screen, err := pty.Open()
	require.NoError(t, err)
	require.NoError(t, pty.Setsize(screen, &pty.Winsize{Rows: 24, Cols: 80}))
	p := &person{screen: screen, seen: make(chan string, 1)}
	go func() {
		var all bytes.Buffer
		part := make([]byte, 64*1024)
		for {
			n, err := eyes.Read(part)
			all.Write(part[:n])
			if onOutput != nil {
				onOutput(all.String())
			}
			if err != nil {
				_ = eyes.Close() // all output was read
				p.seen <- strings.ReplaceAll(all.String(), "\r\n", "\n")
				return
			}
		}
	}()
	return p
}

// atTerminal runs the program at a terminal, and returns the text on the screen.
func atTerminal(t *testing.T, args ...string) (code int, seen string) {
	t.Helper()
	p := newPerson(t, nil)
	code = replay.Execute(t.Context(), "replay", args, genericiooptions.IOStreams{In: strings.NewReader(""), Out: p.screen, ErrOut: p.screen})
	require.NoError(t, p.screen.Close())
	return code, <-p.seen
}

func TestLongTextGoesThroughThePager(t *testing.T) {
	scene(t)
	file := pager(t, `cat > "$PAGED"`)
	code, plain := atTerminal(t, "get", "pods", "-A", "-o", "yaml", "--no-pager", "-q")
	require.Zero(t, code, plain)
	require.NoFileExists(t, file)
	code, seen := atTerminal(t, "get", "pods", "-A", "-o", "yaml", "-q")
	require.Zero(t, code, seen)
	require.Empty(t, seen)
	paged, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Greater(t, strings.Count(plain, "\n"), 100)
	require.Equal(t, plain, string(paged))
}

func TestNotesComeAfterTheText(t *testing.T) {
	scene(t)
	pager(t, `cat; echo the pager ended`)
	code, seen := atTerminal(t, "diff", "-A", "--from", "seq:300", "--to", "seq:700", "-v")
	require.Equal(t, 1, code, seen)
	_, after, ended := strings.Cut(seen, "the pager ended\n")
	require.True(t, ended, seen)
	require.Contains(t, after, "Note:")
}

func TestNoPagerStartsForShortOrMachineReadableText(t *testing.T) {
	scene(t)
	file := pager(t, `cat > "$PAGED"`)
	for _, args := range [][]string{
		{"get", "nodes"},
		{"get", "pods", "-A", "-o", "json"},
		{"snapshot", "--format", "json"},
		{"log", "-A", "--since", "seq:1", "-o", "json"},
	} {
		code, seen := atTerminal(t, args...)
		require.Zero(t, code, seen)
		require.Contains(t, seen, "node-000")
		require.NoFileExists(t, file, args)
	}
	for _, setting := range []string{"REPLAY_PAGER", "REPLAY_NO_PAGER"} {
		t.Setenv(setting, map[string]string{"REPLAY_PAGER": "cat", "REPLAY_NO_PAGER": "true"}[setting])
		_, seen := atTerminal(t, "get", "pods", "-A", "-o", "yaml")
		require.Contains(t, seen, "node-000")
		require.NoFileExists(t, file)
		pager(t, `cat > "$PAGED"`)
	}
	var out bytes.Buffer
	require.Zero(t, replay.Execute(t.Context(), "replay", []string{"get", "pods", "-A", "-o", "yaml"}, genericiooptions.IOStreams{Out: &out, ErrOut: io.Discard}))
	require.Contains(t, out.String(), "node-000")
	require.NoFileExists(t, file)
}

func TestAFollowedLogIsNotPaged(t *testing.T) {
	scene(t)
	file := pager(t, `cat > "$PAGED"`)
	ctx, cancel := context.WithCancelCause(t.Context())
	p := newPerson(t, func(seen string) {
		if strings.Count(seen, "\n") > 40 {
			cancel(&signals.Signal{Name: "SIGINT", Code: 130})
		}
	})
	replay.Execute(ctx, "replay", []string{"log", "-A", "-v", "-f", "--since", "seq:1"}, genericiooptions.IOStreams{Out: p.screen, ErrOut: p.screen})
	require.NoError(t, p.screen.Close())
	require.Greater(t, strings.Count(<-p.seen, "\n"), 40)
	require.NoFileExists(t, file)
}

func TestClosingThePagerEarlyIsNoError(t *testing.T) {
	scene(t)
	pager(t, `head -n 1; exit 3`)
	for _, args := range [][]string{
		{"get", "pods,events,configmaps,clusterroles", "-A", "-o", "yaml"},
		{"log", "-A", "-v", "--since", "seq:1"},
		{"diff", "-A", "--from", "seq:220", "-u", "-v"},
	} {
		code, seen := atTerminal(t, append(args, "-q")...)
		require.Zero(t, code, seen)
		require.Equal(t, 1, strings.Count(seen, "\n"), seen)
	}
}

func TestThePagerFollowsTheVariables(t *testing.T) {
	for _, c := range []struct {
		environ []string
		want    string
	}{
		{nil, "less -FRX"},
		{[]string{"PAGER=head -n 3"}, "head -n 3"},
		{[]string{"PAGER=head", "REPLAY_PAGER=tail -n 1"}, "tail -n 1"},
		{[]string{"REPLAY_PAGER=tail", "PAGER=head"}, "tail"},
		{[]string{"PAGER=cat"}, ""},
		{[]string{"PAGER="}, ""},
		{[]string{"PAGER=no-such-program"}, ""},
	} {
		require.Equal(t, c.want, strings.Join(terminal.Program(c.environ), " "), c.environ)
	}
}
