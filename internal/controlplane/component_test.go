package controlplane

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAComponentWhosePortWasTakenIsStartedAgain(t *testing.T) {
	starts := 0
	component := shell(t, func() string {
		starts++
		if starts < 3 {
			return "echo 'bind: address already in use'; exit 1"
		}
		return "echo up > up; exec sleep 60"
	})
	require.NoError(t, component.Start(t.Context()))
	require.Equal(t, 3, starts)
	require.NoError(t, component.Kill())
}

func TestAComponentThatEndsTooSoonShowsItsLastWords(t *testing.T) {
	starts := 0
	component := shell(t, func() string { starts++; return "echo no such thing; exit 7" })
	err := component.Start(t.Context())
	require.ErrorContains(t, err, "exit status 7")
	require.ErrorContains(t, err, "no such thing")
	require.Equal(t, 1, starts)
	require.Zero(t, component.PID())
}

func TestAComponentThatIsNeverReadyEndsWithTheContext(t *testing.T) {
	component := shell(t, func() string { return "exec sleep 60" })
	ctx, cancel := context.WithCancelCause(t.Context())
	component.ready = func(context.Context) error {
		cancel(errors.New("enough"))
		return errors.New("not yet")
	}
	err := component.Start(ctx)
	require.ErrorContains(t, err, "enough")
	require.ErrorContains(t, err, "not yet")
	require.Zero(t, component.PID())
}

func TestAComponentThatDoesNotListenIsKilledWhenItsTimeIsUp(t *testing.T) {
	component := shell(t, func() string { return "trap '' TERM; echo up > up; while :; do sleep 60; done" })
	require.NoError(t, component.Start(t.Context()))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, component.Stop(ctx))
	require.Zero(t, component.PID())
}

// shell returns a component that runs a shell script. It is ready when the script has made the file "up".
func shell(t *testing.T, script func() string) *Component {
	t.Helper()
	dir := t.TempDir()
	return &Component{
		name: "shell", dir: dir, path: "/bin/sh",
		arguments: func(context.Context) ([]string, error) { return []string{"-c", script()}, nil },
		ready: func(context.Context) error {
			_, err := os.Stat(filepath.Join(dir, "up"))
			return err
		},
	}
}

func TestTheFilesOfAKilledProcessAreRemoved(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	living, err := newHome("")
	require.NoError(t, err)
	abandoned := filepath.Join(temporary, homePrefix+"abandoned")
	require.NoError(t, os.MkdirAll(filepath.Join(abandoned, "etcd-data"), 0o700))

	another, err := newHome("")
	require.NoError(t, err)
	require.NoDirExists(t, abandoned)
	require.DirExists(t, living.dir)
	require.NoError(t, living.close())
	require.NoError(t, another.close())
	require.NoDirExists(t, living.dir)
}

func TestAnAuditLogWithHalfALastLineIsReadUpToIt(t *testing.T) {
	log := `{"auditID":"1","stage":"RequestReceived","verb":"watch","objectRef":{"resource":"pods","apiVersion":"v1"}}
{"auditID":"2","stage":"RequestReceived","verb":"get"}
{"auditID":"1","stage":"ResponseStarted","verb":"watch","responseStatus":{"code":200}}
{"auditID":"2","stage":"ResponseComplete","verb":"get","responseStatus":{"code":404}}
{"auditID":"3","stage":"Requ`
	requests, err := readRequests(strings.NewReader(log))
	require.NoError(t, err)
	require.Len(t, requests, 2)
	require.Equal(t, "pods", requests[0].Resource)
	require.Equal(t, 200, requests[0].Code)
	require.False(t, requests[0].Ended)
	require.Equal(t, 404, requests[1].Code)
	require.True(t, requests[1].Ended)

	_, err = readRequests(strings.NewReader("no JSON\n"))
	require.Error(t, err)
}
