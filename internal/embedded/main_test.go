package embedded

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/kuberewind/kuberewind/internal/pgdata"
)

// holderEnv names a data directory. If it is set, the test binary holds the server of that directory until its input ends.
const holderEnv = "EMBEDDED_TEST_HOLD"

func TestMain(m *testing.M) {
	if dir := os.Getenv(holderEnv); dir != "" {
		os.Exit(holdUntilInputEnds(dir))
	}
	temp, err := os.MkdirTemp(pgdata.Place(), "kr-")
	if err == nil {
		// The library that fetches binaries writes its log there.
		err = errors.Join(os.Chmod(temp, 0o711), os.Setenv("TMPDIR", temp))
	}
	if err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if err := errors.Join(stopShared(), os.RemoveAll(temp)); err != nil {
			fmt.Println("failed:", err)
			code = 1
		}
		os.Exit(code)
	}))
}

var shared struct {
	once   sync.Once
	server *Server
	err    error
}

// sharedServer returns a server for tests that do not change or stop it.
func sharedServer(t *testing.T) *Server {
	t.Helper()
	shared.once.Do(func() {
		dir := filepath.Join(os.TempDir(), "shared")
		shared.server, shared.err = Start(context.Background(), Options{DataDir: dir, Throwaway: true})
	})
	require.NoError(t, shared.err)
	return shared.server
}

func stopShared() error {
	if shared.server == nil {
		return nil
	}
	return shared.server.Stop(context.Background())
}

func holdUntilInputEnds(dir string) int {
	server, err := Start(context.Background(), Options{DataDir: dir, Throwaway: true})
	if err != nil {
		fmt.Println("failed:", err)
		return 1
	}
	fmt.Println("pid", server.PID())
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		fmt.Println("failed:", err)
		return 1
	}
	if err := server.Stop(context.Background()); err != nil {
		fmt.Println("failed:", err)
		return 1
	}
	return 0
}

// holder is another process that holds the server.
type holder struct {
	cmd    *exec.Cmd
	input  io.Closer
	output *bufio.Reader
}

func startHolder(t *testing.T, dir string) *holder {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), holderEnv+"="+dir)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	input, err := cmd.StdinPipe()
	require.NoError(t, err)
	output, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
	return &holder{cmd: cmd, input: input, output: bufio.NewReader(output)}
}

// pid waits until the process holds the server, and returns the server's pid.
func (h *holder) pid(t *testing.T) int {
	t.Helper()
	line, err := h.output.ReadString('\n')
	require.NoError(t, err)
	var pid int
	_, err = fmt.Sscanf(line, "pid %d", &pid)
	require.NoError(t, err, line)
	return pid
}

func (h *holder) release(t *testing.T) {
	t.Helper()
	require.NoError(t, h.input.Close())
	rest, err := io.ReadAll(h.output)
	require.NoError(t, err)
	require.NoError(t, h.cmd.Wait(), string(rest))
}

func (h *holder) kill(t *testing.T) {
	t.Helper()
	require.NoError(t, h.cmd.Process.Kill())
	require.Error(t, h.cmd.Wait())
}

// testContext returns a context that cleanups can use, too.
func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 5*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// newDir returns the path of a data directory whose parent any user may enter. The cleanup removes it, and ends a server that a failed test
// did not stop.
func newDir(t *testing.T) string {
	t.Helper()
	parent, err := os.MkdirTemp("", "embedded-")
	require.NoError(t, err)
	require.NoError(t, os.Chmod(parent, 0o711))
	dir := filepath.Join(parent, "postgres")
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		defer cancel()
		l := layout{dir}
		if pm, err := l.pidFile().read(); err == nil && pm.pid > 1 && workingDir(ctx, pm.pid) == l.data() {
			_ = syscall.Kill(pm.pid, syscall.SIGQUIT)
		}
		if _, err := os.Stat(dir); err == nil {
			require.NoError(t, l.presence().awaitGone(ctx))
		}
		require.NoError(t, os.RemoveAll(parent))
	})
	return dir
}

// filledDir is newDir with the data that make test has prepared, if there are any. It is for tests that do not test initdb.
func filledDir(t *testing.T) string {
	t.Helper()
	dir := newDir(t)
	require.NoError(t, pgdata.Fill(dir))
	return dir
}

func options(t *testing.T, dir string) Options {
	t.Helper()
	return Options{DataDir: dir, Throwaway: true, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))}
}

func start(t *testing.T, o Options) *Server {
	t.Helper()
	server, err := Start(testContext(t), o)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		defer cancel()
		require.NoError(t, server.Stop(ctx))
	})
	return server
}

func stop(t *testing.T, server *Server) {
	t.Helper()
	require.NoError(t, server.Stop(testContext(t)))
}

// query runs statements on a new connection. It returns the first column of the first row of the last statement.
func query(t *testing.T, url string, statements ...string) string {
	t.Helper()
	ctx := testContext(t)
	conn, err := pgx.Connect(ctx, url)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(ctx)) }()
	var value string
	for i, statement := range statements {
		if i < len(statements)-1 {
			_, err = conn.Exec(ctx, statement)
		} else {
			err = conn.QueryRow(ctx, statement).Scan(&value)
		}
		require.NoError(t, err, statement)
	}
	return value
}

func requireAlive(t *testing.T, dir string, want bool) {
	t.Helper()
	alive, err := layout{dir}.presence().alive()
	require.NoError(t, err)
	require.Equal(t, want, alive)
}

func asRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can do this: " + strings.ReplaceAll(t.Name(), "_", " "))
	}
}
