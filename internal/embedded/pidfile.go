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

// postmaster is the content of postmaster.pid, in which the server describes itself.
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

// read returns the content of the pid file, or fs.ErrNotExist if there is none. If the server is still writing the file, read returns the
// lines so far.
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

// accepts reports whether the server accepts connections. A killed server does not, but its pid file remains, and its children may still
// run.
func (pm postmaster) accepts(ctx context.Context) bool {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unix", filepath.Join(pm.socketDir, ".s.PGSQL."+strconv.Itoa(pm.port)))
	if err != nil {
		return false
	}
	_ = conn.Close() // nothing was sent
	return true
}

// removeStale removes the pid file and the sockets of a server that crashed. If another process has its pid now, PostgreSQL would refuse to
// start. The caller makes sure that no server is alive.
func (f pidFile) removeStale(socketDir string) error {
	sockets, _ := filepath.Glob(filepath.Join(globEscape(socketDir), ".s.PGSQL.*")) // the only error is that of a bad pattern
	for _, path := range append(sockets, f.path()) {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return explainPath("remove the file of a crashed server", path, err)
		}
	}
	return nil
}

func globEscape(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// outsider reports whether a server uses the data that this package did not start, for example one that was started by hand.
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

// workingDir returns the working directory of a process. It returns "" if it may not read that: such a process belongs to another user, so
// it is not the server.
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
