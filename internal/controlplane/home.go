package controlplane

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/gofrs/flock"
)

// The names of the folders that hold a control plane's files: the second is what a folder is called until its lock
// is held.
const homePrefix, unlockedPrefix = "kuberewind-control-plane-", "kuberewind-unlocked-"

// home is the folder of one control plane. The process holds a lock on a file in it for as long as it lives. A folder with a
// free lock was left behind by a killed process.
type home struct {
	dir       string
	temporary bool
	lock      *flock.Flock
}

// newHome uses the folder dir, which is kept, or makes one that goes with the control plane.
func newHome(dir string) (*home, error) {
	if dir == "" {
		return temporaryHome(os.TempDir())
	}
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(absolute, 0o700); err != nil {
		return nil, err
	}
	lock, err := lockHome(absolute)
	if err != nil {
		return nil, err
	}
	return &home{dir: absolute, lock: lock}, nil
}

// temporaryHome also removes what killed processes left behind.
func temporaryHome(parent string) (*home, error) {
	removeAbandoned(parent)
	fresh, err := os.MkdirTemp(parent, unlockedPrefix)
	if err != nil {
		return nil, err
	}
	lock, err := lockHome(fresh)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(fresh))
	}
	// Only under its second name is the folder looked at by removeAbandoned. The lock goes with the file.
	dir := filepath.Join(parent, homePrefix+strings.TrimPrefix(filepath.Base(fresh), unlockedPrefix))
	if err := os.Rename(fresh, dir); err != nil {
		return nil, errors.Join(err, lock.Close(), os.RemoveAll(fresh))
	}
	return &home{dir: dir, temporary: true, lock: lock}, nil
}

func lockHome(dir string) (*flock.Flock, error) {
	lock := flock.New(filepath.Join(dir, "lock"))
	held, err := lock.TryLock()
	if err == nil && !held {
		err = errors.New("a control plane runs in " + dir + " already")
	}
	return lock, err
}

// removeAbandoned removes the folders whose lock is free. A folder that cannot be removed belongs to another user, who has to
// remove it.
func removeAbandoned(parent string) {
	dirs, _ := filepath.Glob(filepath.Join(parent, homePrefix+"*"))
	for _, dir := range dirs {
		if lock, err := lockHome(dir); err == nil {
			_ = errors.Join(os.RemoveAll(dir), lock.Close())
		}
	}
}

// close removes the folder if it is temporary, and gives up the lock.
func (h *home) close() error {
	var err error
	if h.temporary {
		err = os.RemoveAll(h.dir)
	}
	return errors.Join(err, h.lock.Close())
}
