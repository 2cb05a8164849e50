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

// claim is a token and the lock of the file that holds it.
//
// The row of a killed recorder stays held until its term ends. If the recorder is restarted on the same data directory, it reads its
// token from the file and gets the row back at once. The lock proves that the former process has ended, because the kernel frees it with
// the process. A copy of the file has its own lock and proves nothing. So the file names its place, and in another place openClaim makes
// a new token.
type claim struct {
	token string
	lock  *flock.Flock // nil if another process has the file, or there is none
}

// openClaim reads the token from the file, or makes one. If the file cannot be used, it returns a new token together with the error.
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

// placeOf returns a text that differs between a file and its copies, on this machine and on others.
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

// thisMachine returns the ID of this boot. Cloned machines share /etc/machine-id and the host name, but not the boot ID. After a reboot
// the term has passed, so a new token costs no time. Systems without a boot ID use the host name.
func thisMachine() string {
	if boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id"); err == nil {
		return strings.TrimSpace(string(boot))
	}
	name, _ := os.Hostname() // with an empty name, only the device and inode of the file differ
	return name
}

// close unlocks the file, so that another process can use it.
func (c claim) close() {
	if c.lock != nil {
		_ = c.lock.Close() // the end of the process does it as well
	}
}
