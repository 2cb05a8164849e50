package pgtest

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
)

// watchScript waits until its input ends. This process holds the other end, so the input ends when this process closes
// it or dies for any reason. If there is a /proc, a pid file counts only if its process works in the data directory.
const watchScript = `
cat >/dev/null
data="$1/postgres/data"
tries=0
while [ -e "$1" ] && [ "$tries" -lt 300 ]; do
	pid=$(head -n 1 "$data/postmaster.pid")
	if [ -n "$pid" ] && kill -0 "$pid" && { [ ! -e /proc/self/cwd ] || [ /proc/"$pid"/cwd -ef "$data" ]; }; then
		kill -QUIT "$pid"
	else
		umount "$1/postgres"
		rm -rf "$1"
	fi
	[ -e "$1" ] || exit 0
	tries=$((tries + 1))
	sleep 0.1
done
[ ! -e "$1" ]
`

// A watchdog is a process that stops the server and removes its directory when this process ends.
type watchdog struct {
	root  string
	cmd   *exec.Cmd
	input io.Closer
}

func startWatchdog(root string) (*watchdog, error) {
	// In its own session it survives a kill of the tests' process group. It inherits neither stdout nor stderr, because
	// `go test` would wait for them.
	cmd := exec.Command("/bin/sh", "-c", watchScript, "pgtest-watchdog", root)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	input, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("start the watchdog of the tests' PostgreSQL: %w", err)
	}
	return &watchdog{root: root, cmd: cmd, input: input}, nil
}

// finish makes the watchdog do its work now.
func (w *watchdog) finish() error {
	if err := w.input.Close(); err != nil {
		return fmt.Errorf("notify the watchdog of %s: %w", w.root, err)
	}
	if err := w.cmd.Wait(); err != nil {
		return fmt.Errorf("remove %s: %w", w.root, err)
	}
	return nil
}

// mountRefusal returns why no file system can be mounted, or "".
func mountRefusal() string {
	if os.Geteuid() != 0 {
		return "only root can mount one"
	}
	dir, err := os.MkdirTemp("", "pgtest-mount-")
	if err != nil {
		return err.Error()
	}
	defer func() { _ = os.Remove(dir) }() // an empty directory
	if err := mountDisk(context.Background(), dir, 1<<20); err != nil {
		return err.Error()
	}
	if out, err := exec.Command("umount", dir).CombinedOutput(); err != nil {
		return fmt.Sprintf("umount %s: %v %s", dir, err, out)
	}
	return ""
}

func mountDisk(ctx context.Context, dir string, bytes int64) error {
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return fmt.Errorf("make a disk for PostgreSQL: %w", err)
	}
	options := "mode=0711,size=" + strconv.FormatInt(bytes, 10)
	if out, err := exec.CommandContext(ctx, "mount", "-t", "tmpfs", "-o", options, "tmpfs", dir).CombinedOutput(); err != nil {
		return fmt.Errorf("mount a disk for PostgreSQL: %w %s", err, out)
	}
	return nil
}

func (l *local) filler() string { return filepath.Join(l.dataDir(), "filler") }

// fill shrinks the disk to its used size, and writes until not even a byte fits.
func (l *local) fill(ctx context.Context) error {
	var disk syscall.Statfs_t
	if err := syscall.Statfs(l.dataDir(), &disk); err != nil {
		return fmt.Errorf("fill the disk: %w", err)
	}
	// Concurrent writes must not make the size too small to be set.
	const room = 1 << 20
	if err := resizeDisk(ctx, l.dataDir(), int64(disk.Blocks-disk.Bfree)*disk.Bsize+room); err != nil {
		return err
	}
	file, err := os.OpenFile(l.filler(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("fill the disk: %w", err)
	}
	for size := room; size > 0; {
		if _, err := file.Write(make([]byte, size)); err != nil {
			size /= 2
		}
	}
	return file.Close()
}

func (l *local) free(ctx context.Context) error {
	if err := os.Remove(l.filler()); err != nil {
		return fmt.Errorf("free the disk: %w", err)
	}
	return resizeDisk(ctx, l.dataDir(), l.diskBytes)
}

func resizeDisk(ctx context.Context, dir string, bytes int64) error {
	size := "remount,size=" + strconv.FormatInt(bytes, 10)
	if out, err := exec.CommandContext(ctx, "mount", "-o", size, dir).CombinedOutput(); err != nil {
		return fmt.Errorf("resize the disk of PostgreSQL: %w %s", err, out)
	}
	return nil
}
