package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/gofrs/flock"
)

// defaultPort only names the socket when no TCP port is asked for: the directory is the server's own.
const defaultPort = 5432

// cleanupTimeout bounds what is undone after a start that failed, perhaps because its context ended.
const cleanupTimeout = 30 * time.Second

// Server is one holder of the server. Its methods may be called from several goroutines.
type Server struct {
	options   Options
	layout    layout
	log       *slog.Logger
	account   account
	socketDir string

	mu       sync.Mutex // protects what follows
	holder   *flock.Flock
	bin      binaries
	running  postmaster
	password string
}

// Start makes the caller a holder of the server in Options.DataDir, and starts that server unless it runs. It waits as long as
// the context allows. It may wait for another process that starts or stops the server, for initdb at the first start, for
// recovery after a crash, or for a download of the binaries. The caller calls Stop.
func Start(ctx context.Context, options Options) (*Server, error) {
	options, err := options.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Server{options: options, layout: layout{options.DataDir}, log: options.Logger}
	if err := s.prepare(ctx); err != nil {
		return nil, err
	}
	if err := s.join(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// prepare makes the directories and chooses the server's account.
func (s *Server) prepare(ctx context.Context) error {
	asRoot := os.Geteuid() == 0
	if err := s.layout.makeRoot(asRoot); err != nil {
		return err
	}
	chosen, err := chooseAccount(os.Geteuid(), s.layout.data())
	if err != nil {
		return err
	}
	s.account, s.socketDir = chosen, s.layout.socketDir(chosen)
	if chosen.name == "nobody" {
		s.log.Warn("the embedded PostgreSQL runs as nobody, whom other programs may share; better add a user for it "+
			"(useradd --system kuberewind) before the first start", "dir", s.layout.dir)
	}
	return s.checkAccount(ctx)
}

// checkAccount enters the data directory as the server's account would.
func (s *Server) checkAccount(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", ":")
	cmd.Dir = s.layout.dir
	cmd.SysProcAttr = s.account.attributes()
	err := cmd.Run()
	if err == nil {
		return nil
	}
	if barrier := s.account.barrier(s.layout.dir); barrier != "" {
		return fmt.Errorf("user %s, who runs PostgreSQL, cannot enter %s: choose a data directory outside it, "+
			"or allow entering it (chmod o+x)", s.account.name, barrier)
	}
	return fmt.Errorf("run a program in %s as user %s, who runs PostgreSQL: %w", s.layout.dir, s.account.name, cause(ctx, err))
}

// join becomes a holder of the server under the lifecycle lock, and releases it again if there is no server.
func (s *Server) join(ctx context.Context) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	lifecycle, err := s.layout.lockLifecycle(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lifecycle.Close()) }()
	if s.holder, err = s.layout.hold(ctx); err != nil {
		return err
	}
	if err := s.ensure(ctx); err != nil {
		cleanup, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
		defer cancel()
		return errors.Join(err, s.leave(cleanup))
	}
	return nil
}

// Ensure starts the server again if it died while it was held. It is for callers that lost their connections.
func (s *Server) Ensure(ctx context.Context) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.holder == nil {
		return errors.New("the embedded PostgreSQL is not held any more")
	}
	lifecycle, err := s.layout.lockLifecycle(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lifecycle.Close()) }()
	return s.ensure(ctx)
}

// ensure needs the lifecycle lock, and s.mu.
func (s *Server) ensure(ctx context.Context) error {
	if err := s.layout.makeServerDirs(s.account); err != nil {
		return err
	}
	major, err := s.layout.dataMajor()
	if err != nil {
		return err
	}
	if s.bin, err = s.chooseBinaries(ctx, major); err != nil {
		return err
	}
	if major == 0 {
		if err := s.initialize(ctx); err != nil {
			return err
		}
	}
	if s.password, err = s.layout.readPassword(); err != nil {
		return fmt.Errorf("%w: without it nobody can log in to the data in %s; restore the file", err, s.layout.data())
	}
	if s.running, err = s.adoptOrLaunch(ctx); err != nil {
		return err
	}
	return s.ensureDatabase(ctx)
}

func (s *Server) adoptOrLaunch(ctx context.Context) (postmaster, error) {
	pm, err := s.adopt(ctx)
	if errors.Is(err, errEnded) {
		if pm, err = s.launch(ctx); err == nil {
			s.log.Info("started the embedded PostgreSQL", "dir", s.layout.dir, "version", s.bin.version, "pid", pm.pid)
		}
		return pm, err
	}
	if err != nil {
		return pm, err
	}
	if s.options.Port != 0 && (pm.port != s.options.Port || pm.listen == "") {
		return pm, fmt.Errorf("the embedded PostgreSQL in %s already runs without TCP port %d; stop the programs that use it, "+
			"or do not ask for a port", s.layout.dir, s.options.Port)
	}
	s.log.Info("using the embedded PostgreSQL that runs already", "dir", s.layout.dir, "pid", pm.pid)
	return pm, nil
}

// adopt returns the server that runs, or errEnded if none does. One that is about to end is waited for.
func (s *Server) adopt(ctx context.Context) (postmaster, error) {
	alive, err := s.layout.serverAlive()
	if err != nil {
		return postmaster{}, err
	}
	if alive {
		return s.awaitReady(ctx, s.layout.serverAlive)
	}
	outsider := func() (bool, error) { return s.layout.outsider(ctx) }
	if alive, err = outsider(); err != nil {
		return postmaster{}, err
	}
	if !alive {
		return postmaster{}, errEnded
	}
	return s.awaitReady(ctx, outsider)
}

// Stop releases the server, and stops it if nobody else holds it: open sessions are cut. The context should outlive the one
// that ended the caller's work. If it ends first, the server finishes its shutdown by itself, and the next Start waits for
// that. A second call does nothing.
func (s *Server) Stop(ctx context.Context) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.holder == nil {
		return nil
	}
	lifecycle, err := s.layout.lockLifecycle(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lifecycle.Close()) }()
	return s.leave(ctx)
}

// leave needs the lifecycle lock, and s.mu.
func (s *Server) leave(ctx context.Context) error {
	err := s.holder.Close()
	s.holder = nil
	if err != nil {
		return fmt.Errorf("release the embedded PostgreSQL: %w", err)
	}
	last, err := s.layout.unheld()
	if err != nil {
		return err
	}
	if !last {
		s.log.Info("left the embedded PostgreSQL to the others who use it", "dir", s.layout.dir)
		return nil
	}
	return s.shutdown(ctx)
}

// Gone returns when no process of the server is alive.
func (s *Server) Gone(ctx context.Context) error { return s.layout.awaitServerGone(ctx) }

// PID is that of the server's main process.
func (s *Server) PID() int { return s.state().pid }

func (s *Server) state() postmaster {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running
}

func (s *Server) port() int {
	if s.options.Port != 0 {
		return s.options.Port
	}
	return defaultPort
}

// command runs a program of the server as its account, in DataDir, away from the user's PG variables and locale. When the
// context ends, it is killed with its children.
func (s *Server) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, s.bin.program(name), args...)
	cmd.Dir = s.layout.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "LANG=C"}
	if path, ok := os.LookupEnv("LD_LIBRARY_PATH"); ok {
		cmd.Env = append(cmd.Env, "LD_LIBRARY_PATH="+path)
	}
	cmd.SysProcAttr = s.account.attributes()
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	return cmd
}
