package pgtest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Setup prepares an empty database for tests. It is connected as the role that owns the database; conn.Config() has
// everything else that it needs. It must close all sessions that it opens.
type Setup = func(ctx context.Context, conn *pgx.Conn) error

// A template is a database in which a setup ran once.
type template struct {
	once sync.Once
	name string
	err  error
}

// createDatabase copies files. Without fsync that takes a fifth of the time of logging every block.
const createDatabase = "CREATE DATABASE %s STRATEGY file_copy"

// New makes a database on the shared server and runs setup in it; if setup is nil, the database stays empty. It is
// dropped after the test.
func New(t testing.TB, setup Setup) *Database {
	t.Helper()
	return Shared(t).New(t, setup)
}

// New makes a database on this server, like the function New.
func (s *Server) New(t testing.TB, setup Setup) *Database {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), operationTimeout)
	defer cancel()
	statement := createDatabase
	if setup != nil {
		template := s.template(setup)
		if template.err != nil {
			t.Fatalf("pgtest: set up a database: %v", template.err)
		}
		statement += " TEMPLATE " + template.name
	}
	d := &Database{server: s, name: s.newName("")}
	if err := s.exec(ctx, fmt.Sprintf(statement, d.name)); err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	if s == sharedServer() { // other servers are removed with all their databases
		t.Cleanup(func() { d.drop(t) })
	}
	return d
}

// template runs a setup at its first use. It has its own context, because other tests use the template as well.
func (s *Server) template(setup Setup) *template {
	key := reflect.ValueOf(setup).Pointer()
	s.mu.Lock()
	made, ok := s.templates[key]
	if !ok {
		made = &template{name: s.newName("template")}
		s.templates[key] = made
	}
	s.mu.Unlock()
	made.once.Do(func() {
		made.err = errors.New("it did not return") // stays if setup panics or ends its goroutine
		ctx, cancel := context.WithTimeout(context.Background(), operationTimeout)
		defer cancel()
		if made.err = s.exec(ctx, fmt.Sprintf(createDatabase, made.name)); made.err == nil {
			made.err = connected(ctx, s.databaseURL(made.name, nil), func(conn *pgx.Conn) error { return setup(ctx, conn) })
		}
	})
	return made
}

// A Database belongs to one test. If a method fails, the test that it is called with fails.
type Database struct {
	server *Server
	name   string

	mu    sync.Mutex // protects roles
	roles []string
}

// Name returns the name of the database.
func (d *Database) Name() string { return d.name }

// Server returns the server of the database.
func (d *Database) Server() *Server { return d.server }

// URL returns a URL that connects as the owner of the database: a superuser, unless TEST_DATABASE_URL names another
// role.
func (d *Database) URL() string { return d.server.databaseURL(d.name, nil) }

// Login makes a role that may only log in, with the rights of the roles of which it is a member. It returns the URL of
// the role. If the owner may not make roles, the test is skipped.
func (d *Database) Login(t testing.TB, memberOf ...string) string {
	t.Helper()
	var may bool
	d.onAdmin(t, func(ctx context.Context, conn *pgx.Conn) error {
		return conn.QueryRow(ctx, "SELECT rolsuper OR rolcreaterole FROM pg_roles WHERE rolname = current_user").Scan(&may)
	})
	if !may {
		t.Skipf("the role of %s may not make roles", URLEnv)
	}
	random := make([]byte, 12)
	_, _ = rand.Read(random) // never fails
	name, password := d.server.newName("role"), hex.EncodeToString(random)
	statements := []string{fmt.Sprintf("CREATE ROLE %s LOGIN PASSWORD '%s'", name, password)}
	for _, parent := range memberOf {
		statements = append(statements, fmt.Sprintf("GRANT %s TO %s", pgx.Identifier{parent}.Sanitize(), name))
	}
	d.mu.Lock()
	d.roles = append(d.roles, name)
	d.mu.Unlock()
	d.execAdmin(t, statements...)
	return d.server.databaseURL(d.name, url.UserPassword(name, password))
}

// Connect opens a connection as the owner, closed after the test.
func (d *Database) Connect(t testing.TB) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), d.URL())
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), operationTimeout)
		defer cancel()
		_ = conn.Close(ctx) // the test may have cut it, or its server
	})
	return conn
}

// Pool opens a pool as the owner, closed after the test.
func (d *Database) Pool(t testing.TB) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), d.URL())
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// Exec runs statements as the owner, on a connection of its own.
func (d *Database) Exec(t testing.TB, statements ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), operationTimeout)
	defer cancel()
	err := connected(ctx, d.URL(), func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, strings.Join(statements, ";\n"))
		return err
	})
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
}

// CutConnections ends every session of the database, as an administrator does. A statement fails with SQLSTATE 57P01;
// an idle connection breaks. CutConnections returns the number of sessions after they have ended.
func (d *Database) CutConnections(t testing.TB) int {
	t.Helper()
	var cut int
	d.onAdmin(t, func(ctx context.Context, conn *pgx.Conn) error {
		// With a timeout, pg_terminate_backend returns after the backend has ended.
		return conn.QueryRow(ctx, `SELECT count(*) FILTER (WHERE pg_terminate_backend(pid, 60000))
			FROM pg_stat_activity WHERE datname = $1 AND backend_type = 'client backend'`, d.name).Scan(&cut)
	})
	return cut
}

// RefuseConnections makes the database refuse new sessions (SQLSTATE 55000), even of superusers. Open sessions
// continue.
func (d *Database) RefuseConnections(t testing.TB) { t.Helper(); d.alter(t, "ALLOW_CONNECTIONS false") }

// AllowConnections undoes RefuseConnections.
func (d *Database) AllowConnections(t testing.TB) { t.Helper(); d.alter(t, "ALLOW_CONNECTIONS true") }

// LimitConnections limits the sessions of all roles that are no superusers to n (SQLSTATE 53300); -1 removes the limit.
func (d *Database) LimitConnections(t testing.TB, n int) {
	t.Helper()
	d.alter(t, fmt.Sprintf("CONNECTION LIMIT %d", n))
}

// ReadOnly cuts every session, and makes later ones read-only by default (SQLSTATE 25006).
func (d *Database) ReadOnly(t testing.TB) {
	t.Helper()
	d.alter(t, "SET default_transaction_read_only = on")
	d.CutConnections(t)
}

// ReadWrite undoes ReadOnly, for later sessions.
func (d *Database) ReadWrite(t testing.TB) {
	t.Helper()
	d.alter(t, "RESET default_transaction_read_only")
	d.CutConnections(t)
}

func (d *Database) alter(t testing.TB, what string) {
	t.Helper()
	d.execAdmin(t, "ALTER DATABASE "+d.name+" "+what)
}

func (d *Database) execAdmin(t testing.TB, statements ...string) {
	t.Helper()
	d.onAdmin(t, func(ctx context.Context, conn *pgx.Conn) error {
		for _, statement := range statements {
			if _, err := conn.Exec(ctx, statement); err != nil {
				return err
			}
		}
		return nil
	})
}

// onAdmin also works in a test's cleanup, after the test's context has ended.
func (d *Database) onAdmin(t testing.TB, do func(context.Context, *pgx.Conn) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), operationTimeout)
	defer cancel()
	if err := d.server.admin(ctx, func(conn *pgx.Conn) error { return do(ctx, conn) }); err != nil {
		t.Fatalf("pgtest: %v", err)
	}
}

func (d *Database) drop(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), operationTimeout)
	defer cancel()
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.server.drop(ctx, d.name, d.roles); err != nil {
		t.Errorf("pgtest: %v", err)
	}
}
