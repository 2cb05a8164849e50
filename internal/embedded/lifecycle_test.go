package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// canceller is a slog handler that cancels at a message.
type canceller struct {
	slog.Handler
	message string
	cancel  context.CancelFunc
}

func (c canceller) Handle(ctx context.Context, record slog.Record) error {
	if strings.Contains(record.Message, c.message) {
		c.cancel()
	}
	return c.Handler.Handle(ctx, record)
}

func cancelOn(logger *slog.Logger, message string, cancel context.CancelFunc) *slog.Logger {
	return slog.New(canceller{logger.Handler(), message, cancel})
}

func TestTheLastHolderStopsTheServer(t *testing.T) {
	t.Parallel()
	dir := filledDir(t)
	first := startHolder(t, dir)
	pid := first.pid(t)
	second := start(t, options(t, dir))
	require.Equal(t, pid, second.PID())

	first.release(t)
	require.Equal(t, "1", query(t, second.URL(), "SELECT '1'"))
	stop(t, second)
	requireAlive(t, dir, false)
}

func TestProcessesThatStartAtOnceShareOneServer(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	holders := []*holder{startHolder(t, dir), startHolder(t, dir), startHolder(t, dir)}
	pid := holders[0].pid(t)
	for _, h := range holders[1:] {
		require.Equal(t, pid, h.pid(t))
	}
	for _, h := range holders {
		h.release(t)
	}
	requireAlive(t, dir, false)
}

func TestTheServerSurvivesItsKilledStarterAndTheNextHolderStopsIt(t *testing.T) {
	t.Parallel()
	dir := filledDir(t)
	starter := startHolder(t, dir)
	pid := starter.pid(t)
	starter.kill(t)
	requireAlive(t, dir, true)

	next := start(t, options(t, dir))
	require.Equal(t, pid, next.PID())
	require.Equal(t, "1", query(t, next.URL(), "SELECT '1'"))
	stop(t, next)
	requireAlive(t, dir, false)
}

func TestAKilledHolderDoesNotKeepTheServerUp(t *testing.T) {
	t.Parallel()
	dir := filledDir(t)
	server := start(t, options(t, dir))
	other := startHolder(t, dir)
	require.Equal(t, server.PID(), other.pid(t))
	other.kill(t)
	stop(t, server)
	requireAlive(t, dir, false)
}

func TestCtrlCDoesNotReachTheServer(t *testing.T) {
	t.Parallel()
	dir := filledDir(t)
	starter := startHolder(t, dir)
	starter.pid(t)
	require.NoError(t, syscall.Kill(-starter.cmd.Process.Pid, syscall.SIGINT), "as a terminal does: to the whole process group")
	require.Error(t, starter.cmd.Wait())
	require.Equal(t, "1", query(t, start(t, options(t, dir)).URL(), "SELECT '1'"))
}

func TestAServerThatDiedIsStartedAgain(t *testing.T) {
	t.Parallel()
	server := start(t, options(t, filledDir(t)))
	query(t, server.URL(), "CREATE TABLE t AS SELECT 'kept' AS v", "SELECT v FROM t")
	pid := server.PID()
	require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
	require.NoError(t, server.Gone(testContext(t)), "a dying server may still answer")
	require.NoError(t, server.Ensure(testContext(t)))
	require.NotEqual(t, pid, server.PID())
	require.Equal(t, "kept", query(t, server.URL(), "SELECT v FROM t"))
}

func TestAPidFileOfACrashIsRemovedEvenIfItsPidIsReused(t *testing.T) {
	t.Parallel()
	dir := filledDir(t)
	server := start(t, options(t, dir))
	require.NoError(t, syscall.Kill(server.PID(), syscall.SIGKILL))
	require.NoError(t, server.Gone(testContext(t)))
	stop(t, server)

	// PostgreSQL takes this process of the server's account for a server.
	sleeper := exec.Command("sleep", "300")
	sleeper.Dir = "/"
	sleeper.SysProcAttr = server.programs.account.attributes()
	require.NoError(t, sleeper.Start())
	t.Cleanup(func() { _, _ = sleeper.Process.Kill(), sleeper.Wait() })
	for _, path := range []string{server.layout.pidFile().path(), filepath.Join(server.cluster.socketDir, ".s.PGSQL.5432.lock")} {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		_, rest, _ := strings.Cut(string(text), "\n")
		require.NoError(t, os.WriteFile(path, fmt.Appendf(nil, "%d\n%s", sleeper.Process.Pid, rest), 0o600))
	}

	require.Equal(t, "1", query(t, start(t, options(t, dir)).URL(), "SELECT '1'"))
	require.NoError(t, sleeper.Process.Signal(syscall.Signal(0)), "the other process must not be killed")
}

func TestStartWaitsForAServerThatIsStopping(t *testing.T) {
	t.Parallel()
	dir := filledDir(t)
	server := start(t, options(t, dir))
	query(t, server.URL(), "CREATE TABLE t AS SELECT 'kept' AS v", "SELECT v FROM t")
	pid := server.PID()
	require.NoError(t, syscall.Kill(pid, syscall.SIGSTOP))
	// The context has ended, but release still sends the signal to stop.
	ctx, cancel := context.WithCancel(testContext(t))
	cancel()
	lifecycle, err := server.layout.presence().lockLifecycle(testContext(t))
	require.NoError(t, err)
	require.ErrorContains(t, server.release(ctx), "got the signal to stop and still runs")
	require.NoError(t, lifecycle.Close())
	require.NoError(t, syscall.Kill(pid, syscall.SIGCONT))

	next := start(t, options(t, dir))
	require.Equal(t, "kept", query(t, next.URL(), "SELECT v FROM t"))
	require.NotEqual(t, pid, next.PID())
}

func TestAServerStartedByHandIsUsedAndNotStopped(t *testing.T) {
	t.Parallel()
	dir := filledDir(t)
	server := start(t, options(t, dir))
	stop(t, server)
	out, err := server.programs.command(testContext(t), "pg_ctl", "start", "--wait", "--silent", "--pgdata=data", "--log=log/by-hand.log").CombinedOutput()
	require.NoError(t, err, string(out))
	byHand, err := server.layout.pidFile().read()
	require.NoError(t, err)

	server = start(t, options(t, dir))
	require.Equal(t, byHand.pid, server.PID())
	require.Equal(t, "1", query(t, server.URL(), "SELECT '1'"))
	url := server.URL()
	stop(t, server)
	require.Equal(t, "1", query(t, url, "SELECT '1'"))
	out, err = server.programs.command(testContext(t), "pg_ctl", "stop", "--pgdata=data").CombinedOutput()
	require.NoError(t, err, string(out))
}

func TestAnInterruptedInitdbIsRepeated(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	first := startHolder(t, dir)
	scratch, ctx := layout{dir}.scratch(), testContext(t)
	for {
		if _, err := os.Stat(filepath.Join(scratch, "PG_VERSION")); err == nil {
			break
		} else if !errors.Is(err, os.ErrNotExist) {
			require.NoError(t, err)
		}
		require.NoError(t, pause(ctx))
	}
	first.kill(t)
	require.Equal(t, "1", query(t, start(t, options(t, dir)).URL(), "SELECT '1'"))
	require.NoDirExists(t, scratch)
}
