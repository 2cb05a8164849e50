package election

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/gofrs/flock"
)

// claim is a token, and the lock of the file that keeps it.
//
// A recorder that was killed leaves its row behind until the term is over. If it is started again on the same data directory, it finds
// its token there and has the row back at once. The lock proves that the former process has ended: the kernel frees it with the process.
// A copy of the file has a lock of its own and proves nothing. So the file names its place, and in another place a new token is made.
type claim struct {
	token string
	lock  *flock.Flock // nil if another process has the file, or there is none
}

// openClaim reads the token of the file, or makes one. If the file cannot be used, it returns the error beside a token of this process's own.
func openClaim(path, machine string) (c claim, err error) {
	c.token = rand.Text()
	if path == "" {
		return c, nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o711); err != nil {
		return c, err
	}
	lock := flock.New(path, flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(0o600))
	free, err := lock.TryLock()
	if err != nil {
		return c, err
	}
	if !free {
		return c, fmt.Errorf("%s is in use by another process", path)
	}
	c.lock = lock
	place, err := placeOf(path, machine)
	if err != nil {
		return c, err
	}
	kept, err := os.ReadFile(path)
	if token, at, ok := strings.Cut(string(kept), "\n"); err == nil && ok && at == place {
		c.token = token
		return c, nil
	}
	return c, os.WriteFile(path, []byte(c.token+"\n"+place), 0o600)
}

// placeOf tells a file from its copies, on this machine and on others.
func placeOf(path, machine string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "", fmt.Errorf("identity of %s: not known on this system", path)
	}
	return fmt.Sprintf("%s %d %d\n", machine, stat.Dev, stat.Ino), nil
}

// thisMachine is the number of this boot. Machines that were cloned share /etc/machine-id and the name of the host, but no boot.
// After a boot the term has passed, so nothing is lost. Systems without that number have the name of the host.
func thisMachine() string {
	if boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id"); err == nil {
		return strings.TrimSpace(string(boot))
	}
	name, _ := os.Hostname() // an empty name tells machines apart by the file alone
	return name
}

// close lets another process have the file.
func (c claim) close() {
	if c.lock != nil {
		_ = c.lock.Close() // the end of the process does it as well
	}
}
