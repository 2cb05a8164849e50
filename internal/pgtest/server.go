package pgtest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/kuberewind/kuberewind/internal/embedded"
	"github.com/kuberewind/kuberewind/internal/pgdata"
)

// A Server is a PostgreSQL server for tests.
type Server struct {
	url    *url.URL // of the role that makes databases
	prefix string   // of the names of everything that the tests make on it
	number atomic.Int64

	mu        sync.Mutex // protects what follows
	templates map[uintptr]*template
	local     *local // nil if this process did not start the server
}

// A local server is one that this process started.
type local struct {
	root      string // the directory that the watchdog removes
	diskBytes int64  // size of its own file system, 0 if it has none
	watchdog  *watchdog
	held      *embedded.Server // nil while it is stopped
}

func (l *local) dataDir() string { return filepath.Join(l.root, "postgres") }

func newServer(rawURL string) (*Server, error) {
	u, err := url.Parse(rawURL)
	if err != nil || (u.Scheme != "postgres" && u.Scheme != "postgresql") {
		return nil, fmt.Errorf("%s has to be a URL that begins with postgres://", URLEnv)
	}
	random := make([]byte, 5)
	_, _ = rand.Read(random) // never fails
	return &Server{url: u, prefix: "pgtest_" + hex.EncodeToString(random), templates: map[uintptr]*template{}}, nil
}

func useExternal(ctx context.Context, rawURL string) (*Server, error) {
	s, err := newServer(rawURL)
	if err != nil {
		return nil, err
	}
	var role string
	var may bool
	err = s.admin(ctx, func(conn *pgx.Conn) error {
		return conn.QueryRow(ctx, "SELECT rolname, rolsuper OR rolcreatedb FROM pg_roles WHERE rolname = current_user").Scan(&role, &may)
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", URLEnv, err)
	}
	if !may {
		return nil, fmt.Errorf("%s: role %s may not create databases: ALTER ROLE … CREATEDB", URLEnv, role)
	}
	return s, nil
}

// startLocal starts a server in a temporary directory. If diskBytes is not 0, the server gets a file system of that
// size.
func startLocal(ctx context.Context, diskBytes int64) (*Server, error) {
	root, err := os.MkdirTemp(pgdata.Place(), "pgtest-")
	if err != nil {
		return nil, fmt.Errorf("make a directory for PostgreSQL: %w", err)
	}
	watchdog, err := startWatchdog(root)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(root))
	}
	l := &local{root: root, diskBytes: diskBytes, watchdog: watchdog}
	if err := l.open(ctx); err != nil {
		return nil, errors.Join(err, l.close(ctx))
	}
	s, err := newServer(l.held.URL())
	if err != nil {
		return nil, errors.Join(err, l.close(ctx))
	}
	s.local = l
	return s, nil
}

func (l *local) open(ctx context.Context) (err error) {
	if err := os.Chmod(l.root, 0o711); err != nil { // as root, the server runs under another account
		return fmt.Errorf("make a directory for PostgreSQL: %w", err)
	}
	if l.diskBytes != 0 {
		if err := mountDisk(ctx, l.dataDir(), l.diskBytes); err != nil {
			return err
		}
	}
	return l.start(ctx)
}

func (l *local) start(ctx context.Context) (err error) {
	if l.held != nil {
		return l.held.Ensure(ctx)
	}
	if err := pgdata.Fill(l.dataDir()); err != nil {
		return err
	}
	l.held, err = embedded.Start(ctx, embedded.Options{DataDir: l.dataDir(), Throwaway: true})
	return err
}

func (l *local) stop(ctx context.Context) error {
	if l.held == nil {
		return nil
	}
	err := l.held.Stop(ctx)
	l.held = nil
	return err
}

func (l *local) kill(ctx context.Context) error {
	if l.held == nil {
		return errors.New("PostgreSQL is not running")
	}
	if err := syscall.Kill(l.held.PID(), syscall.SIGKILL); err != nil {
		return fmt.Errorf("kill PostgreSQL: %w", err)
	}
	return l.held.Gone(ctx)
}

func (l *local) close(ctx context.Context) error {
	return errors.Join(l.stop(ctx), l.watchdog.finish())
}

// close ends a server that this process started. On another server, it drops the templates.
func (s *Server) close(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.local != nil {
		return s.local.close(ctx)
	}
	var err error
	for _, template := range s.templates {
		err = errors.Join(err, s.drop(ctx, template.name, nil))
	}
	return err
}

// StartServer starts a server for one test. The server ends with the test.
func StartServer(t testing.TB) *Server {
	t.Helper()
	return startPrivate(t, 0)
}

// StartServerOnDisk starts a server for one test, whose data, log and socket are on a file system of that size. If the
// user may not mount one, the test is skipped. An empty server takes about 80 MiB.
func StartServerOnDisk(t testing.TB, bytes int64) *Server {
	t.Helper()
	if reason := mountRefusal(); reason != "" {
		t.Skip("no small file system for a full disk: " + reason)
	}
	return startPrivate(t, bytes)
}

func startPrivate(t testing.TB, diskBytes int64) *Server {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), operationTimeout)
	defer cancel()
	s, err := startLocal(ctx, diskBytes)
	if err != nil {
		t.Fatalf("pgtest: start a server: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), operationTimeout)
		defer cancel()
		if err := s.close(ctx); err != nil {
			t.Errorf("pgtest: %v", err)
		}
	})
	return s
}

// Stop stops the server: it ends sessions, and new ones find no socket.
func (s *Server) Stop(t testing.TB) { t.Helper(); s.private(t, (*local).stop) }

// Start starts the server after Stop or Kill. URLs stay valid.
func (s *Server) Start(t testing.TB) { t.Helper(); s.private(t, (*local).start) }

// Restart stops the server and starts it again.
func (s *Server) Restart(t testing.TB) { t.Helper(); s.Stop(t); s.Start(t) }

// MayMount returns why no small file system can be mounted here, or "".
func MayMount() (refusal string) { return mountRefusal() }

// Kill ends the server as a crash does. It returns after all its processes have ended.
func (s *Server) Kill(t testing.TB) { t.Helper(); s.private(t, (*local).kill) }

// FillDisk fills the disk of StartServerOnDisk. The space that the server has reserved for its log stays usable. So a
// growing table fails first (SQLSTATE 53100); a full log makes the server crash, see Start.
func (s *Server) FillDisk(t testing.TB) { t.Helper(); s.private(t, (*local).fill) }

// FreeDisk undoes FillDisk.
func (s *Server) FreeDisk(t testing.TB) { t.Helper(); s.private(t, (*local).free) }

func (s *Server) private(t testing.TB, do func(*local, context.Context) error) {
	t.Helper()
	if s.local == nil || s == sharedServer() {
		t.Fatal("pgtest: other tests use this server: take one from StartServer")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), operationTimeout)
	defer cancel()
	if err := do(s.local, ctx); err != nil {
		t.Fatalf("pgtest: %v", err)
	}
}

func sharedServer() *Server {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	return shared.server
}

// admin runs do on a new connection to the server's maintenance database.
func (s *Server) admin(ctx context.Context, do func(*pgx.Conn) error) error {
	return connected(ctx, s.url.String(), do)
}

func connected(ctx context.Context, address string, do func(*pgx.Conn) error) error {
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		return err
	}
	return errors.Join(do(conn), conn.Close(ctx))
}

func (s *Server) exec(ctx context.Context, statements ...string) error {
	return s.admin(ctx, func(conn *pgx.Conn) error {
		for _, statement := range statements {
			if _, err := conn.Exec(ctx, statement); err != nil {
				return fmt.Errorf("%s: %w", statement, err)
			}
		}
		return nil
	})
}

func (s *Server) newName(kind string) string {
	return fmt.Sprintf("%s_%s%d", s.prefix, kind, s.number.Add(1))
}

// databaseURL returns the URL of another database on the server, for its maker or for another role.
func (s *Server) databaseURL(name string, user *url.Userinfo) string {
	u := *s.url
	u.Path = "/" + name
	if user != nil {
		u.User = user
	}
	return u.String()
}

func (s *Server) drop(ctx context.Context, database string, roles []string) error {
	statements := []string{"DROP DATABASE IF EXISTS " + database + " WITH (FORCE)"}
	for _, role := range roles {
		statements = append(statements, "DROP ROLE IF EXISTS "+role)
	}
	return s.exec(ctx, statements...)
}
