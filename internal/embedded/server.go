package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/gofrs/flock"
)

// cleanupTimeout bounds the cleanup after a failed start. The context of that start may have ended.
const cleanupTimeout = 30 * time.Second

// Server is one holder of the server. Its methods may be called from several goroutines.
type Server struct {
	layout   layout
	log      *slog.Logger
	programs *programs
	cluster  *cluster
	login    *login
	launcher *launcher

	mu      sync.Mutex // protects the fields below, programs.bin, and login.password
	holder  *flock.Flock
	running postmaster
}

// Start makes the caller a holder of the server in Options.DataDir, and starts that server unless it runs. It waits as long as the context
// allows. It may wait for another process that starts or stops the server, or for initdb at the first start. It may also wait for recovery
// after a crash, or for a download of the binaries. The caller calls Stop.
func Start(ctx context.Context, options Options) (*Server, error) {
	options, err := options.withDefaults()
	if err != nil {
		return nil, err
	}
	s, err := prepare(ctx, options)
	if err != nil {
		return nil, err
	}
	if err := s.join(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// prepare makes the directories and chooses the server's account.
func prepare(ctx context.Context, options Options) (*Server, error) {
	l, asRoot := layout{options.DataDir}, os.Geteuid() == 0
	if err := l.makeRoot(asRoot); err != nil {
		return nil, err
	}
	chosen, err := chooseAccount(os.Geteuid(), l.data())
	if err != nil {
		return nil, err
	}
	if chosen.name == "nobody" {
		options.Logger.Warn("the embedded PostgreSQL runs under an account that other programs may use, too; add a user for it "+
			"(useradd --system kuberewind) before the first start", "account", chosen.name, "dir", l.dir)
	}
	s := assemble(l, chosen, options)
	return s, s.programs.checkAccount(ctx)
}

func assemble(l layout, chosen account, options Options) *Server {
	s := &Server{layout: l, log: options.Logger, login: &login{layout: l}}
	s.programs = &programs{layout: l, account: chosen, named: options.BinDir, log: s.log}
	s.cluster = &cluster{
		layout: l, programs: s.programs, socketDir: l.socketDir(chosen),
		tcpPort: options.Port, throwaway: options.Throwaway, log: s.log,
	}
	s.launcher = &launcher{layout: l, programs: s.programs, cluster: s.cluster, login: s.login, log: s.log}
	return s
}

// join makes this Server a holder and starts the server if it does not run. If that fails, join releases the server again.
func (s *Server) join(ctx context.Context) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	lifecycle, err := s.layout.presence().lockLifecycle(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lifecycle.Close()) }()
	if s.holder, err = s.layout.presence().hold(ctx); err != nil {
		return err
	}
	if err := s.ensure(ctx); err != nil {
		cleanup, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
		defer cancel()
		return errors.Join(err, s.release(cleanup))
	}
	return nil
}

// Ensure starts the server again if it has died. It is for callers that lost their connections.
func (s *Server) Ensure(ctx context.Context) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.holder == nil {
		return errors.New("this process no longer holds the embedded PostgreSQL")
	}
	lifecycle, err := s.layout.presence().lockLifecycle(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lifecycle.Close()) }()
	return s.ensure(ctx)
}

// ensure starts the server unless it runs. The caller holds the lifecycle lock and s.mu.
func (s *Server) ensure(ctx context.Context) error {
	if err := s.layout.makeServerDirs(s.programs.account); err != nil {
		return err
	}
	major, err := s.layout.dataMajor()
	if err != nil {
		return err
	}
	if s.programs.bin, err = s.programs.choose(ctx, major); err != nil {
		return err
	}
	if major == 0 {
		if err := s.cluster.initialize(ctx); err != nil {
			return err
		}
	}
	if s.login.password, err = s.layout.passFile().read(); err != nil {
		return fmt.Errorf("%w: without it no client can log in to the data in %s; restore the file", err, s.layout.data())
	}
	if s.running, err = s.launcher.adoptOrLaunch(ctx); err != nil {
		return err
	}
	return s.login.ensureDatabase(ctx, s.running)
}

// Stop releases the server. If no other process holds it, Stop stops it and cuts open sessions. The context should outlive the one that
// ended the caller's work. If it ends first, the server finishes its shutdown by itself, and the next Start waits for that. A second call
// does nothing.
func (s *Server) Stop(ctx context.Context) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.holder == nil {
		return nil
	}
	lifecycle, err := s.layout.presence().lockLifecycle(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lifecycle.Close()) }()
	return s.release(ctx)
}

// release ends the hold of this Server, and stops the server if no other process holds it. The caller holds the lifecycle lock and s.mu.
func (s *Server) release(ctx context.Context) error {
	err := s.holder.Close()
	s.holder = nil
	if err != nil {
		return fmt.Errorf("release the embedded PostgreSQL: %w", err)
	}
	last, err := s.layout.presence().unheld()
	if err != nil {
		return err
	}
	if !last {
		s.log.Info("released the embedded PostgreSQL, which other processes still use", "dir", s.layout.dir)
		return nil
	}
	return s.launcher.shutdown(ctx)
}

// Gone returns when no process of the server is alive.
func (s *Server) Gone(ctx context.Context) error { return s.layout.presence().awaitGone(ctx) }

// PID returns the pid of the server's main process.
func (s *Server) PID() int { return s.state().pid }

func (s *Server) state() postmaster {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running
}
