package badinput_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/internal/recordertest"
)

// The exit codes that the help of the program promises.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitEnvironment = 3
	exitFenced      = 4
)

// program is one as it is shipped.
type program string

const recorder program = "recorder"

// invocation is one call of the program, in a home of its own.
type invocation struct {
	args []string
	env  []string
	// during is called while the program runs; it may end it.
	during func(t *testing.T, process *os.Process)
}

// password must not be shown by anything.
const password = "hunter2"

// run gives the exit code and what the program said, log and last words.
func (p program) run(t *testing.T, i invocation) (code int, said string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, recordertest.Program(string(p)), append(i.args, "--listen=")...)
	home := t.TempDir()
	cmd.Env = append(i.env, "HOME="+home, "PATH="+os.Getenv("PATH"), "XDG_CONFIG_HOME="+home)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = time.Second
	require.NoError(t, cmd.Start())
	if i.during != nil {
		during := true
		defer func() {
			if during { // It has failed.
				cancel()
				_ = cmd.Wait()
				t.Log(out.String())
			}
		}()
		i.during(t, cmd.Process)
		during = false
	}
	err := cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		require.NoError(t, err, "%s", out.String())
	}
	require.NoError(t, ctx.Err(), "it did not end: %s", out.String())
	return cmd.ProcessState.ExitCode(), out.String()
}

// refuses wants an exit code, and all the words in the error, which is the last line said.
func (p program) refuses(t *testing.T, i invocation, code int, words ...string) {
	t.Helper()
	got, said := p.run(t, i)
	_, last, found := strings.Cut("\n"+said, "\nrecorder: ")
	require.True(t, found, "%s", said)
	t.Log(last)
	for _, word := range words {
		require.Contains(t, last, word)
	}
	require.Equal(t, code, got, "%s", said)
	require.NotContains(t, said, "goroutine ", "a panic")
	require.NotContains(t, said, password)
}
