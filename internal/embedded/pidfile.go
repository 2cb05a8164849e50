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
)

// postmaster is what the server says of itself in postmaster.pid.
type postmaster struct {
	pid       int
	port      int
	socketDir string
	listen    string // the first TCP address, "" if none
	ready     bool
}

// pidFile is postmaster.pid of the data directory, which the server writes.
type pidFile struct{ data string }

func (f pidFile) path() string { return filepath.Join(f.data, "postmaster.pid") }

// read returns fs.ErrNotExist if there is no pid file. While the file is written, its lines so far are given.
func (f pidFile) read() (postmaster, error) {
	text, err := os.ReadFile(f.path())
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

// accepts tells a server from the pid file of one that was killed, whose children are still ending.
func (pm postmaster) accepts(ctx context.Context) bool {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unix", filepath.Join(pm.socketDir, ".s.PGSQL."+strconv.Itoa(pm.port)))
	if err != nil {
		return false
	}
	_ = conn.Close() // nothing was sent
	return true
}

// removeStale removes what a server left that did not end by itself. Another process may have its pid by now, in which
// case PostgreSQL would refuse to start. No server may be alive.
func (f pidFile) removeStale(socketDir string) error {
	sockets, _ := filepath.Glob(filepath.Join(globEscape(socketDir), ".s.PGSQL.*")) // the only error is that of a bad pattern
	for _, path := range append(sockets, f.path()) {
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
func (f pidFile) outsider(ctx context.Context) (bool, error) {
	pm, err := f.read()
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, explainPath("read", f.path(), err)
	}
	if pm.pid <= 0 || errors.Is(syscall.Kill(pm.pid, 0), syscall.ESRCH) {
		return false, nil
	}
	data, err := filepath.EvalSymlinks(f.data)
	if err != nil {
		return false, explainPath("resolve", f.data, err)
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
