package embedded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// launcher starts and stops the processes of the server. It adopts a server that runs already.
type launcher struct {
	layout   layout
	programs *programs
	cluster  *cluster
	login    *login
	log      *slog.Logger
}

// errEnded says that the server does not run, or ended while launcher waited for it.
var errEnded = errors.New("the server ended")

// slowStart is how long a start may take before it is logged as slow.
const slowStart = 5 * time.Second

// adoptOrLaunch returns the running server, and starts it if it does not run. The caller holds the lifecycle lock.
func (l *launcher) adoptOrLaunch(ctx context.Context) (postmaster, error) {
	pm, err := l.adopt(ctx)
	if errors.Is(err, errEnded) {
		if pm, err = l.launch(ctx); err == nil {
			l.log.Info("started the embedded PostgreSQL", "dir", l.layout.dir, "version", l.programs.bin.version, "pid", pm.pid)
		}
		return pm, err
	}
	if err != nil {
		return pm, err
	}
	if l.cluster.tcpPort != 0 && (pm.port != l.cluster.tcpPort || pm.listen == "") {
		return pm, fmt.Errorf("the embedded PostgreSQL in %s already runs without TCP port %d; stop the programs that use it, "+
			"or configure no port", l.layout.dir, l.cluster.tcpPort)
	}
	l.log.Info("using the embedded PostgreSQL that runs already", "dir", l.layout.dir, "pid", pm.pid)
	return pm, nil
}

// adopt returns the running server, or errEnded if none runs. It waits for a server that is starting or stopping.
func (l *launcher) adopt(ctx context.Context) (postmaster, error) {
	alive, err := l.layout.presence().alive()
	if err != nil {
		return postmaster{}, err
	}
	if alive {
		return l.awaitReady(ctx, l.layout.presence().alive)
	}
	outsider := func() (bool, error) { return l.layout.pidFile().outsider(ctx) }
	if alive, err = outsider(); err != nil {
		return postmaster{}, err
	}
	if !alive {
		return postmaster{}, errEnded
	}
	return l.awaitReady(ctx, outsider)
}

// awaitReady waits until the server accepts connections. It returns errEnded if alive reports that the server has ended.
func (l *launcher) awaitReady(ctx context.Context, alive func() (bool, error)) (postmaster, error) {
	slow := time.Now().Add(slowStart)
	for {
		pm, err := l.layout.pidFile().read()
		if err == nil && pm.ready && pm.accepts(ctx) {
			return pm, nil
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return postmaster{}, explainPath("read", l.layout.pidFile().path(), err)
		}
		if ok, err := alive(); err != nil {
			return postmaster{}, err
		} else if !ok {
			return postmaster{}, errEnded
		}
		if time.Now().After(slow) {
			slow = slow.Add(6 * slowStart)
			l.log.Info("the embedded PostgreSQL is not ready yet (after a crash it first replays its log)", "dir", l.layout.dir)
		}
		if err := pause(ctx); err != nil {
			return postmaster{}, fmt.Errorf("wait for the embedded PostgreSQL in %s: %w", l.layout.dir, err)
		}
	}
}

// launch starts the server, detached from this process. The caller holds the lifecycle lock.
func (l *launcher) launch(ctx context.Context) (postmaster, error) {
	since := time.Now()
	if err := l.layout.pidFile().removeStale(l.cluster.socketDir); err != nil {
		return postmaster{}, err
	}
	if err := l.cluster.writeSettings(ctx); err != nil {
		return postmaster{}, err
	}
	program := l.programs.bin.program("postgres")
	was, err := identify(program)
	if err != nil {
		return postmaster{}, err
	}
	if err := l.spawn(ctx); err != nil {
		return postmaster{}, err
	}
	pm, err := l.awaitReady(ctx, l.layout.presence().alive)
	if errors.Is(err, errEnded) {
		err = l.layout.explainOutput(fmt.Errorf("PostgreSQL %s did not start in %s", l.programs.bin.version, l.layout.dir),
			l.layout.logTail(since))
	}
	if err != nil {
		return pm, err
	}
	return pm, l.noteStart(ctx, pm, program, was)
}

// spawn starts the server by pg_ctl, so that the server is no child of this process, which would have to wait for it. The paths are
// relative, because pg_ctl passes them to a shell.
func (l *launcher) spawn(ctx context.Context) error {
	lock, err := l.layout.presence().takeServer(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }() // nothing was written; the server keeps the lock
	if err := os.Remove(l.layout.startLog()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return explainPath("remove", l.layout.startLog(), err)
	}
	cmd := l.programs.command(ctx, "pg_ctl", "start", "--no-wait", "--silent", "--pgdata=data", "--log=log/startup.log")
	cmd.ExtraFiles = []*os.File{lock}
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		return l.layout.explainOutput(fmt.Errorf("start PostgreSQL %s in %s: %w", l.programs.bin.version, l.layout.dir, cause(ctx, err)),
			string(out))
	}
	return nil
}

// shutdown ends the server. It cuts sessions; committed data stay. The caller holds the lifecycle lock, and no other process may hold the
// server. shutdown does not end a server that was started by hand.
func (l *launcher) shutdown(ctx context.Context) error {
	alive, err := l.layout.presence().alive()
	if err != nil || !alive {
		return err
	}
	pm, err := l.layout.pidFile().read()
	if err == nil && pm.pid > 0 {
		err = syscall.Kill(pm.pid, syscall.SIGINT) // PostgreSQL's fast shutdown
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("stop the embedded PostgreSQL in %s: %w", l.layout.dir, err)
	}
	if err := l.layout.presence().awaitGone(ctx); err != nil {
		return fmt.Errorf("the embedded PostgreSQL in %s got the signal to stop and still runs: %w", l.layout.dir, err)
	}
	l.log.Info("stopped the embedded PostgreSQL", "dir", l.layout.dir)
	if filepath.Dir(l.cluster.socketDir) != l.layout.dir {
		_ = os.Remove(l.cluster.socketDir) // an empty directory below /tmp, made again at the next start
	}
	return nil
}

// cause returns why the context ended. If it has not ended, cause returns err.
func cause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
