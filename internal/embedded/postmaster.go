package embedded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// postmaster is what the server says of itself in postmaster.pid.
type postmaster struct {
	pid       int
	port      int
	socketDir string
	listen    string // the first TCP address, "" if none
	ready     bool
}

// readPostmaster returns fs.ErrNotExist if there is no pid file. While the file is written, its lines so far are given.
func (l layout) readPostmaster() (postmaster, error) {
	text, err := os.ReadFile(l.pidFile())
	if err != nil {
		return postmaster{}, err
	}
	// pid, data directory, start time, port, socket directory, address, shared memory key, status
	lines := append(strings.Split(string(text), "\n"), make([]string, 8)...)
	pid, _ := strconv.Atoi(strings.TrimSpace(lines[0]))
	port, _ := strconv.Atoi(strings.TrimSpace(lines[3]))
	return postmaster{
		pid: pid, port: port, socketDir: strings.TrimSpace(lines[4]), listen: strings.TrimSpace(lines[5]),
		ready: strings.TrimSpace(lines[7]) == "ready",
	}, nil
}

// errEnded is the end of a server that was waited for.
var errEnded = errors.New("the server ended")

// slowStart is after how long a start is reported as slow.
const slowStart = 5 * time.Second

// awaitReady waits until the server takes connections. alive tells whether it can still come to that.
func (s *Server) awaitReady(ctx context.Context, alive func() (bool, error)) (postmaster, error) {
	slow := time.Now().Add(slowStart)
	for {
		pm, err := s.layout.readPostmaster()
		if err == nil && pm.ready && s.accepts(ctx, pm) {
			return pm, nil
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return postmaster{}, explainPath("read", s.layout.pidFile(), err)
		}
		if ok, err := alive(); err != nil {
			return postmaster{}, err
		} else if !ok {
			return postmaster{}, errEnded
		}
		if time.Now().After(slow) {
			slow = slow.Add(6 * slowStart)
			s.log.Info("the embedded PostgreSQL is not ready yet (after a crash it first replays its log)", "dir", s.layout.dir)
		}
		if err := pause(ctx); err != nil {
			return postmaster{}, fmt.Errorf("wait for the embedded PostgreSQL in %s: %w", s.layout.dir, err)
		}
	}
}

// accepts tells a server from the pid file of one that was killed, whose children are still ending.
func (s *Server) accepts(ctx context.Context, pm postmaster) bool {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unix", filepath.Join(pm.socketDir, ".s.PGSQL."+strconv.Itoa(pm.port)))
	if err != nil {
		return false
	}
	_ = conn.Close() // nothing was sent
	return true
}

// launch starts the server, detached from this process. It needs the lifecycle lock.
func (s *Server) launch(ctx context.Context) (postmaster, error) {
	since := time.Now()
	if err := s.layout.removeStale(s.socketDir); err != nil {
		return postmaster{}, err
	}
	if err := s.writeSettings(ctx); err != nil {
		return postmaster{}, err
	}
	program := s.bin.program("postgres")
	was, err := identify(program)
	if err != nil {
		return postmaster{}, err
	}
	if err := s.spawn(ctx); err != nil {
		return postmaster{}, err
	}
	pm, err := s.awaitReady(ctx, s.layout.serverAlive)
	if errors.Is(err, errEnded) {
		err = s.layout.explainOutput(fmt.Errorf("PostgreSQL %s did not start in %s", s.bin.version, s.layout.dir),
			s.layout.logTail(since))
	}
	if err != nil {
		return pm, err
	}
	return pm, s.noteStart(ctx, pm, program, was)
}

// spawn has pg_ctl start the server, because it leaves no child behind that a parent would have to wait for. Paths are
// relative, because pg_ctl hands them to a shell.
func (s *Server) spawn(ctx context.Context) error {
	lock, err := s.takeServerLock(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }() // nothing was written; from here on the lock is the server's
	if err := os.Remove(s.layout.startLog()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return explainPath("remove", s.layout.startLog(), err)
	}
	cmd := s.command(ctx, "pg_ctl", "start", "--no-wait", "--silent", "--pgdata=data", "--log=log/startup.log")
	cmd.ExtraFiles = []*os.File{lock}
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		return s.layout.explainOutput(fmt.Errorf("start PostgreSQL %s in %s: %w", s.bin.version, s.layout.dir, cause(ctx, err)),
			string(out))
	}
	return nil
}

// takeServerLock waits for readers of the lock, and for orphans.
func (s *Server) takeServerLock(ctx context.Context) (*os.File, error) {
	for {
		lock, free, err := s.layout.lockServer()
		if err != nil || free {
			return lock, err
		}
		if err := pause(ctx); err != nil {
			return nil, fmt.Errorf("wait for what still runs in %s: %w", s.layout.dir, err)
		}
	}
}

// removeStale removes what a server left that did not end by itself. Another process may have its pid by now, in which
// case PostgreSQL would refuse to start. No server may be alive.
func (l layout) removeStale(socketDir string) error {
	sockets, _ := filepath.Glob(filepath.Join(globEscape(socketDir), ".s.PGSQL.*")) // the only error is that of a bad pattern
	for _, path := range append(sockets, l.pidFile()) {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return explainPath("remove what a crash left", path, err)
		}
	}
	return nil
}

func globEscape(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// outsider tells whether a server that this package did not start uses the data: one that was started by hand.
func (l layout) outsider(ctx context.Context) (bool, error) {
	pm, err := l.readPostmaster()
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, explainPath("read", l.pidFile(), err)
	}
	if pm.pid <= 0 || errors.Is(syscall.Kill(pm.pid, 0), syscall.ESRCH) {
		return false, nil
	}
	data, err := filepath.EvalSymlinks(l.data())
	if err != nil {
		return false, explainPath("resolve", l.data(), err)
	}
	// A server works in its data directory; another process with its pid does not.
	return workingDir(ctx, pm.pid) == data, nil
}

// workingDir is "" for processes that cannot be looked at: they are another user's, so not the server.
func workingDir(ctx context.Context, pid int) string {
	if _, err := os.Stat("/proc/self/cwd"); err == nil {
		dir, _ := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid))
		return dir
	}
	out, _ := exec.CommandContext(ctx, "lsof", "-a", "-p", strconv.Itoa(pid), "-d", "cwd", "-Fn").Output()
	for line := range strings.Lines(string(out)) {
		if dir, ok := strings.CutPrefix(line, "n"); ok {
			return strings.TrimSpace(dir)
		}
	}
	return ""
}

// shutdown ends the server: sessions are cut, what is committed stays. It needs the lifecycle lock, and nobody else may hold
// the server. One that an outsider started goes on.
func (s *Server) shutdown(ctx context.Context) error {
	alive, err := s.layout.serverAlive()
	if err != nil || !alive {
		return err
	}
	pm, err := s.layout.readPostmaster()
	if err == nil && pm.pid > 0 {
		err = syscall.Kill(pm.pid, syscall.SIGINT) // PostgreSQL's fast shutdown
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("stop the embedded PostgreSQL in %s: %w", s.layout.dir, err)
	}
	if err := s.layout.awaitServerGone(ctx); err != nil {
		return fmt.Errorf("the embedded PostgreSQL in %s was told to stop and has not yet: %w", s.layout.dir, err)
	}
	s.log.Info("stopped the embedded PostgreSQL", "dir", s.layout.dir)
	if filepath.Dir(s.socketDir) != s.layout.dir {
		_ = os.Remove(s.socketDir) // an empty directory below /tmp, made again at the next start
	}
	return nil
}

// cause is why the context ended, if that is why a command failed.
func cause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
