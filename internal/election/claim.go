package election

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"
)

// claim is a token, and the lock of the file that keeps it.
//
// A recorder that was killed leaves its row behind until the term is over. If it is started again on the same data directory, it finds
// its token there and has the row back at once. The lock proves that the former process has ended: the kernel frees it with the process.
type claim struct {
	token string
	lock  *flock.Flock // nil if another process has the file, or there is none
}

// openClaim reads the token of the file, or makes one. If the file cannot be used, it returns the error beside a token of this process's own.
func openClaim(path string) (c claim, err error) {
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
	kept, err := os.ReadFile(path)
	if err == nil && len(kept) == len(c.token) {
		c.token = string(kept)
		return c, nil
	}
	return c, os.WriteFile(path, []byte(c.token), 0o600)
}

// close lets another process have the file.
func (c claim) close() {
	if c.lock != nil {
		_ = c.lock.Close() // the end of the process does it as well
	}
}
