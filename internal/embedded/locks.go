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
	"syscall"
	"time"

	"github.com/gofrs/flock"
)

// pollInterval is how often a lock, a pid file or a port that gives no signal is looked at.
const pollInterval = 20 * time.Millisecond

// lockLifecycle waits for a process that starts or stops the server. The caller closes the lock.
func (l layout) lockLifecycle(ctx context.Context) (*flock.Flock, error) {
	lock := newLock(l.lifecycle())
	if _, err := lock.TryLockContext(ctx, pollInterval); err != nil {
		return nil, explainPath("wait for the lock", l.lifecycle(), err)
	}
	return lock, nil
}

// hold makes the caller one of the holders, until it closes the lock or dies. It needs the lifecycle lock.
func (l layout) hold(ctx context.Context) (*flock.Flock, error) {
	lock := newLock(l.holders())
	if _, err := lock.TryRLockContext(ctx, pollInterval); err != nil {
		return nil, explainPath("take the lock", l.holders(), err)
	}
	return lock, nil
}

// unheld tells whether nobody holds the server. It needs the lifecycle lock, so the answer stays true until that is released.
func (l layout) unheld() (bool, error) {
	lock := newLock(l.holders())
	free, err := lock.TryLock()
	if err != nil {
		return false, explainPath("take the lock", l.holders(), err)
	}
	if free {
		err = lock.Close()
	}
	return free, err
}

func newLock(path string) *flock.Flock {
	return flock.New(path, flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(0o600))
}

// lockServer takes the lock that the server's processes inherit. It is a bare file, because it has to be closed without
// being unlocked: the lock belongs to the open file, which the server goes on holding.
func (l layout) lockServer() (file *os.File, free bool, err error) {
	file, err = os.OpenFile(l.server(), os.O_CREATE|os.O_RDWR|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, false, explainPath("open the lock", l.server(), err)
	}
	for {
		err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err == nil {
		return file, true, nil
	}
	_ = file.Close() // nothing was written
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, false, nil
	}
	return nil, false, explainPath("take the lock", l.server(), err)
}

// serverAlive tells whether any process of a server that this package started is alive, be it an orphan of a killed one.
func (l layout) serverAlive() (bool, error) {
	file, free, err := l.lockServer()
	if free {
		_ = file.Close() // nothing was written
	}
	return !free, err
}

// awaitServerGone returns when no process of the server is alive.
func (l layout) awaitServerGone(ctx context.Context) error {
	for {
		alive, err := l.serverAlive()
		if err != nil || !alive {
			return err
		}
		if err := pause(ctx); err != nil {
			return err
		}
	}
}

func pause(ctx context.Context) error {
	timer := time.NewTimer(pollInterval)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// Lock is exclusive among all processes that use one data directory. It ends with the process that holds it.
type Lock struct{ file *flock.Flock }

// HeldError is returned for a lock that another holds.
type HeldError struct {
	Name   string
	Holder string // "pid 17 on host since …", or "" where it cannot be read
}

func (e *HeldError) Error() string {
	holder := e.Holder
	if holder == "" {
		holder = "another process"
	}
	return fmt.Sprintf("%s is held by %s", e.Name, holder)
}

// lookAtLock is longer than Holder has a lock, and shorter than a person waits for a refusal.
const lookAtLock = 200 * time.Millisecond

// Lock takes the exclusive lock of that name, such as a cluster's UID. It does not wait for another holder. The error is a *HeldError if another
// process (or another Server of this one) has it.
func (s *Server) Lock(name string) (*Lock, error) {
	if err := os.MkdirAll(s.layout.locks(), 0o700); err != nil {
		return nil, explainPath("make the directory", s.layout.locks(), err)
	}
	path := s.layout.lock(name)
	lock := newLock(path)
	ctx, cancel := context.WithTimeout(context.Background(), lookAtLock)
	defer cancel()
	free, err := lock.TryLockContext(ctx, pollInterval)
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return nil, explainPath("take the lock", path, err)
	}
	if !free {
		holder, _ := os.ReadFile(path) // it only completes the message
		return nil, &HeldError{Name: name, Holder: strings.TrimSpace(string(holder))}
	}
	if err := os.WriteFile(path, []byte(describeSelf()), 0o600); err != nil {
		return nil, errors.Join(explainPath("write the lock", path, err), lock.Close())
	}
	return &Lock{file: lock}, nil
}

// Holder names the process that has the lock of that name, as HeldError does. It returns "" if none has it.
func (s *Server) Holder(name string) (string, error) {
	path := s.layout.lock(name)
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

func (l layout) lock(name string) string {
	return filepath.Join(l.locks(), url.PathEscape(name)+".lock")
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
