package main

import (
	"bytes"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"
)

// names are the names of the program. Under one of them, the test binary is the program.
var names = []string{"replay", "kubectl-replay", "kubectl-kuberewind", "kubectl_complete-kuberewind"}

func TestMain(m *testing.M) {
	if slices.Contains(names, filepath.Base(os.Args[0])) {
		main()
	}
	os.Exit(m.Run())
}

// install links the program into a directory, under each of its names.
func install(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	bin := t.TempDir()
	for _, name := range names {
		require.NoError(t, os.Symlink(self, filepath.Join(bin, name)))
	}
	return bin
}

func TestScripts(t *testing.T) {
	bin := install(t)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("XDG_CONFIG_HOME", filepath.Join(env.WorkDir, ".config"))
			env.Setenv("REPLAY_DATA_DIR", filepath.Join(env.WorkDir, "data"))
			env.Setenv("KUBECONFIG", filepath.Join(env.WorkDir, "kubeconfig"))
			env.Setenv("PATH", bin+string(filepath.ListSeparator)+env.Getenv("PATH"))
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits},
	})
}

// exits CODE argument…: replay must end with this code.
func exits(ts *testscript.TestScript, _ bool, args []string) {
	code := 0
	var exit *exec.ExitError
	if err := ts.Exec("replay", args[1:]...); errors.As(err, &exit) {
		code = exit.ExitCode()
	}
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("exit code %d instead of %s", code, args[0])
	}
}

// TestAClosedPipeIsAWriteErrorAndNoSignal fails if SIGPIPE ends the program before it stops an embedded database.
func TestAClosedPipeIsAWriteErrorAndNoSignal(t *testing.T) {
	read, write, err := os.Pipe()
	require.NoError(t, err)
	require.NoError(t, read.Close())
	var said bytes.Buffer
	cmd := exec.Command(filepath.Join(install(t), "replay"), "version")
	cmd.Stdout, cmd.Stderr = write, &said
	var exit *exec.ExitError
	require.ErrorAs(t, cmd.Run(), &exit)
	require.NoError(t, write.Close())
	require.Equal(t, 141, exit.ExitCode(), "-1 is a signal")
	require.Empty(t, said.String())
}

// TestSignalsEndTheProgramWhileItWaitsForTheDatabase uses a database that accepts connections and never answers.
func TestSignalsEndTheProgramWhileItWaitsForTheDatabase(t *testing.T) {
	bin := install(t)
	for signal, code := range map[os.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143} {
		mute, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		defer mute.Close()
		var out bytes.Buffer
		cmd := exec.Command(filepath.Join(bin, "replay"), "get", "pods", "--database", "postgres://u@"+mute.Addr().String()+"/d?sslmode=disable")
		cmd.Stdout, cmd.Stderr = &out, &out
		cmd.Env = append(os.Environ(), "KUBECONFIG="+t.TempDir()+"/none")
		require.NoError(t, cmd.Start())
		conn, err := mute.Accept()
		require.NoError(t, err)
		defer func() { _ = conn.Close() }()
		require.NoError(t, cmd.Process.Signal(signal))
		ended := make(chan struct{})
		go func() {
			_ = cmd.Wait() // ProcessState says more
			close(ended)
		}()
		select {
		case <-ended:
		case <-time.After(5 * time.Minute):
			_ = cmd.Process.Kill()
			t.Fatal("it did not end")
		}
		require.Equal(t, code, cmd.ProcessState.ExitCode(), out.String())
		require.Empty(t, out.String())
	}
}
