package embedded

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// URL returns a URL of the record's database: through the unix socket, as the superuser who owns it, with the password. If a role is
// given, sessions act as that role from their first statement and return to it at RESET ROLE. The role need not be able to log in. If the
// role does not exist, the connection fails.
func (s *Server) URL(role ...string) string {
	options := ""
	if len(role) > 0 {
		options = "-c role=" + strings.NewReplacer(`\`, `\\`, ` `, `\ `).Replace(role[0])
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.login.url(s.running, superuser, options)
}

// PSQL returns a command that runs psql on the record's database. The caller wires its input and output and starts it. psql reads the
// password from a file, so the password is neither in its arguments nor in its environment.
func (s *Server) PSQL(ctx context.Context, args ...string) (*exec.Cmd, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	path := s.programs.bin.program("psql")
	if _, err := os.Stat(path); err != nil {
		if path, err = exec.LookPath("psql"); err != nil {
			return nil, fmt.Errorf("psql is neither in %s nor on PATH: install PostgreSQL's client "+
				"(Debian, Ubuntu: apt-get install postgresql-client; Fedora: dnf install postgresql; macOS: brew install libpq): %w",
				s.programs.bin.dir, err)
		}
	}
	cmd := exec.CommandContext(ctx, path, args...)
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "PG") {
			cmd.Env = append(cmd.Env, variable)
		}
	}
	cmd.Env = append(cmd.Env, "PGHOST="+s.running.socketDir, "PGPORT="+strconv.Itoa(s.running.port),
		"PGUSER="+superuser, "PGDATABASE="+superuser, "PGPASSFILE="+filepath.Clean(string(s.layout.passFile())))
	return cmd, nil
}

// login connects to the server as the superuser. Server.mu protects it.
type login struct {
	layout   layout
	password string
}

// url returns the URL of a database of a running server.
func (l *login) url(pm postmaster, database, options string) string {
	query := url.Values{"host": {pm.socketDir}, "port": {strconv.Itoa(pm.port)}}
	if options != "" {
		query.Set("options", options)
	}
	u := url.URL{
		Scheme: "postgres", User: url.UserPassword(superuser, l.password), Path: "/" + database,
		// libpq does not decode + as a space.
		RawQuery: strings.ReplaceAll(query.Encode(), "+", "%20"),
	}
	return u.String()
}

// connect opens a connection to a database of a running server.
func (l *login) connect(ctx context.Context, pm postmaster, database string) (*pgx.Conn, error) {
	conn, err := pgx.Connect(ctx, l.url(pm, database, ""))
	var refusal *pgconn.PgError
	if errors.As(err, &refusal) && refusal.Code == pgerrcode.InvalidPassword {
		return nil, fmt.Errorf("the password in %s is not that of user %s: restore the file", l.layout.passFile(), superuser)
	}
	if err != nil {
		return nil, fmt.Errorf("connect to the embedded PostgreSQL in %s: %w", l.layout.dir, err)
	}
	return conn, nil
}

// ensureDatabase makes the record's database at the first start.
func (l *login) ensureDatabase(ctx context.Context, pm postmaster) error {
	conn, err := l.connect(ctx, pm, superuser)
	var refusal *pgconn.PgError
	if errors.As(err, &refusal) && refusal.Code == pgerrcode.InvalidCatalogName {
		return l.createDatabase(ctx, pm)
	}
	if err != nil {
		return err
	}
	return conn.Close(ctx)
}

func (l *login) createDatabase(ctx context.Context, pm postmaster) error {
	conn, err := l.connect(ctx, pm, "postgres")
	if err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, "CREATE DATABASE "+superuser); err != nil {
		return errors.Join(fmt.Errorf("create the database %s: %w", superuser, err), conn.Close(ctx))
	}
	return conn.Close(ctx)
}

// othersThan counts the sessions whose application name is none of the names. It counts backups, too.
func (l *login) othersThan(ctx context.Context, pm postmaster, names []string) (others int, err error) {
	conn, err := l.connect(ctx, pm, superuser)
	if err != nil {
		return 0, err
	}
	err = conn.QueryRow(ctx, `
		SELECT count(*) FROM pg_stat_activity
		WHERE backend_type IN ('client backend', 'walsender') AND pid <> pg_backend_pid() AND application_name <> ALL ($1)`, names).Scan(&others)
	return others, errors.Join(err, conn.Close(ctx))
}
