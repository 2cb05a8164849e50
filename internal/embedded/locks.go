package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/gofrs/flock"
)

// pollInterval is how often the package polls a lock, a pid file or a port.
const pollInterval = 20 * time.Millisecond

// presence uses locks to find out whether a process starts or stops the server, whether a process holds it, and whether a process of the
// server is alive. Its fields are paths.
type presence struct{ dir, lifecycle, holders, server string }

// lockLifecycle takes the lifecycle lock. It waits for a process that starts or stops the server. The caller closes the lock.
func (p presence) lockLifecycle(ctx context.Context) (*flock.Flock, error) {
	lock := newLock(p.lifecycle)
	if _, err := lock.TryLockContext(ctx, pollInterval); err != nil {
		return nil, explainPath("wait for the lock", p.lifecycle, err)
	}
	return lock, nil
}

// hold makes the caller a holder of the server, until it closes the lock or dies. The caller holds the lifecycle lock.
func (p presence) hold(ctx context.Context) (*flock.Flock, error) {
	lock := newLock(p.holders)
	if _, err := lock.TryRLockContext(ctx, pollInterval); err != nil {
		return nil, explainPath("take the lock", p.holders, err)
	}
	return lock, nil
}

// unheld reports whether no process holds the server. The caller holds the lifecycle lock, so the answer stays true until it releases that.
func (p presence) unheld() (bool, error) {
	lock := newLock(p.holders)
	free, err := lock.TryLock()
	if err != nil {
		return false, explainPath("take the lock", p.holders, err)
	}
	if free {
		err = lock.Close()
	}
	return free, err
}

func newLock(path string) *flock.Flock {
	return flock.New(path, flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(0o600))
}

// lockServer takes the lock that the server's processes inherit. It returns a plain file, because closing a flock.Flock would unlock it. The
// lock belongs to the open file, which the server keeps open.
func (p presence) lockServer() (file *os.File, free bool, err error) {
	file, err = os.OpenFile(p.server, os.O_CREATE|os.O_RDWR|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, false, explainPath("open the lock", p.server, err)
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
	return nil, false, explainPath("take the lock", p.server, err)
}

// alive reports whether any process of a server that this package started is alive, including orphans of a killed server.
func (p presence) alive() (bool, error) {
	file, free, err := p.lockServer()
	if free {
		_ = file.Close() // nothing was written
	}
	return !free, err
}

// takeServer takes the lock of the server. It waits for processes that test the lock, and for orphans of a killed server.
func (p presence) takeServer(ctx context.Context) (*os.File, error) {
	for {
		lock, free, err := p.lockServer()
		if err != nil || free {
			return lock, err
		}
		if err := pause(ctx); err != nil {
			return nil, fmt.Errorf("wait for processes that still run in %s: %w", p.dir, err)
		}
	}
}

// awaitGone returns when no process of the server is alive.
func (p presence) awaitGone(ctx context.Context) error {
	for {
		alive, err := p.alive()
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
