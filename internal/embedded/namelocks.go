package embedded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"
)

// Lock is a lock that only one process of a data directory can hold. The kernel frees it when that process ends.
type Lock struct{ file *flock.Flock }

// HeldError says that another process, or another Server of this process, holds a lock.
type HeldError struct {
	Name   string
	Holder string // "pid 17 on host since …", or "" if it cannot be read
}

func (e *HeldError) Error() string {
	holder := e.Holder
	if holder == "" {
		holder = "another process"
	}
	return fmt.Sprintf("%s is held by %s", e.Name, holder)
}

// nameLocks is the folder of the named locks. A name is, for example, the UID of a cluster.
type nameLocks string

// lookAtLock is how long take waits for a lock. It is longer than holder keeps the lock while it tests it, and short for an operator who
// waits for the error.
const lookAtLock = 200 * time.Millisecond

// Lock takes the exclusive lock of that name, such as a cluster's UID. It does not wait for another holder. If another process, or another
// Server of this process, has the lock, the error is a *HeldError.
func (s *Server) Lock(name string) (*Lock, error) { return s.layout.locks().take(name) }

func (d nameLocks) take(name string) (*Lock, error) {
	if err := os.MkdirAll(string(d), 0o700); err != nil {
		return nil, explainPath("make the directory", string(d), err)
	}
	path := d.path(name)
	lock := newLock(path)
	ctx, cancel := context.WithTimeout(context.Background(), lookAtLock)
	defer cancel()
	free, err := lock.TryLockContext(ctx, pollInterval)
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return nil, explainPath("take the lock", path, err)
	}
	if !free {
		holder, _ := os.ReadFile(path) // it is only for the message
		return nil, &HeldError{Name: name, Holder: strings.TrimSpace(string(holder))}
	}
	if err := os.WriteFile(path, []byte(describeSelf()), 0o600); err != nil {
		return nil, errors.Join(explainPath("write the lock", path, err), lock.Close())
	}
	return &Lock{file: lock}, nil
}

// Holder returns the process that has the lock of that name, in the form of HeldError.Holder. It returns "" if no process has it.
func (s *Server) Holder(name string) (string, error) { return s.layout.locks().holder(name) }

func (d nameLocks) holder(name string) (string, error) {
	path := d.path(name)
	lock := flock.New(path, flock.SetFlag(os.O_RDONLY))
	free, err := lock.TryRLock()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case err != nil:
		return "", explainPath("look at the lock", path, err)
	case free:
		return "", lock.Close()
	}
	holder, err := os.ReadFile(path)
	if err != nil {
		return "", explainPath("read the lock", path, err)
	}
	return strings.TrimSpace(string(holder)), nil
}

func (d nameLocks) path(name string) string {
	return filepath.Join(string(d), url.PathEscape(name)+".lock")
}

func describeSelf() string {
	host, err := os.Hostname()
	if err != nil {
		host = "an unknown host"
	}
	return fmt.Sprintf("pid %d on %s since %s\n", os.Getpid(), host, time.Now().UTC().Format(time.RFC3339))
}

// Unlock releases the lock. A second call does nothing.
func (l *Lock) Unlock() error {
	if err := l.file.Close(); err != nil {
		return fmt.Errorf("unlock %s: %w", l.file.Path(), err)
	}
	return nil
}
