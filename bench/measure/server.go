package measure

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kuberewind/kuberewind/internal/embedded"
	"github.com/kuberewind/kuberewind/internal/pgdata"
	"github.com/kuberewind/kuberewind/migrations"
)

// A Server is a PostgreSQL that is there for as long as something is measured on it. One goroutine uses it.
type Server struct {
	URL string
	PID int // of its main process

	server   *embedded.Server
	made     int    // databases
	template string // URL of an empty record, once there is one
}

// stopPatience bounds how long a server may take to stop, also after an interrupt.
const stopPatience = time.Minute

// ServerOptions say how a server is started. Beside them it has the settings of the embedded one.
type ServerOptions struct {
	Dir string // under which its data is put for a while; the system's temporary folder, if empty
	// Durable has it wait for its disk at each commit, which only measures of writing need.
	Durable bool
	// DateCommits has it keep when each transaction was committed.
	DateCommits bool
}

// OnServer runs something on a PostgreSQL of its own, and notes its version. Results of another version are not added to, and one that is to wait for its
// disk needs one.
func (r *Run) OnServer(ctx context.Context, options ServerOptions, do func(*Server) error) error {
	options.Dir = r.Dir
	if dir := cmp.Or(r.Dir, os.TempDir()); options.Durable && inMemory(dir) {
		return fmt.Errorf("%s is in memory, and nothing that is committed there waits for a disk: name a folder on one, as -dir /var/tmp (make bench DIR=/var/tmp)", dir)
	}
	return OnServer(ctx, options, func(server *Server) error {
		version, err := server.Version(ctx)
		if err != nil {
			return err
		}
		if err := r.Report.measuredOn(version); err != nil {
			return err
		}
		return do(server)
	})
}

// OnServer runs something on a PostgreSQL of its own, and removes it.
func OnServer(ctx context.Context, options ServerOptions, do func(*Server) error) (err error) {
	dir, err := os.MkdirTemp(options.place(), "kuberewind-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := os.Chmod(dir, 0o711); err != nil { // as root the server runs under another account
		return err
	}
	settings := embedded.Options{DataDir: filepath.Join(dir, "postgres"), Throwaway: !options.Durable}
	if settings.Throwaway {
		if err := pgdata.Fill(settings.DataDir); err != nil {
			return err
		}
	}
	if options.DateCommits {
		if err := dateCommits(ctx, settings); err != nil {
			return err
		}
	}
	server, err := embedded.Start(ctx, settings)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop(ctx, server)) }()
	return do(&Server{URL: server.URL(), PID: server.PID(), server: server})
}

// place is the folder in which the server's folder is made. Small benchmarks that make test runs need no disk.
func (o *ServerOptions) place() string {
	if o.Dir == "" && !o.Durable && os.Getenv(pgdata.Env) != "" {
		return pgdata.Place()
	}
	return o.Dir
}

func stop(ctx context.Context, server *embedded.Server) error {
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopPatience)
	defer cancel()
	return server.Stop(stopping)
}

// dateCommits makes a server that dates commits, which it does from its next start on.
func dateCommits(ctx context.Context, settings embedded.Options) error {
	server, err := embedded.Start(ctx, settings)
	if err != nil {
		return err
	}
	s := Server{URL: server.URL()}
	err = s.on(ctx, s.URL, func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "ALTER SYSTEM SET track_commit_timestamp = on")
		return err
	})
	return errors.Join(err, stop(ctx, server))
}

// PSQL is a psql on one of the server's databases, not yet started, that reads no start-up file.
func (s *Server) PSQL(ctx context.Context, database string, args ...string) (*exec.Cmd, error) {
	cmd, err := s.server.PSQL(ctx, append([]string{"--no-psqlrc", "--set=ON_ERROR_STOP=1", "--dbname=" + nameOf(database)}, args...)...)
	if err != nil {
		return nil, err
	}
	cmd.Env = append(cmd.Env, "LC_ALL=C")
	return cmd, nil
}

// Version is PostgreSQL's own.
func (s *Server) Version(ctx context.Context) (version string, err error) {
	err = s.on(ctx, s.URL, func(conn *pgx.Conn) error { return conn.QueryRow(ctx, `SHOW server_version`).Scan(&version) })
	return version, err
}

// NewRecord makes an empty record as recorders make it, in a database of its own.
func (s *Server) NewRecord(ctx context.Context) (address string, err error) {
	if s.template == "" {
		if address, err = s.NewDatabase(ctx); err != nil {
			return "", err
		}
		if err := migrations.Up(ctx, address, slog.New(slog.DiscardHandler)); err != nil {
			return "", err
		}
		if err := s.on(ctx, address, func(conn *pgx.Conn) error {
			_, err := migrations.Roles(ctx, conn)
			return err
		}); err != nil {
			return "", err
		}
		s.template = address
	}
	return s.Copy(ctx, s.template)
}

// NewDatabase makes an empty database. All earlier writes are on disk then.
func (s *Server) NewDatabase(ctx context.Context) (address string, err error) {
	return s.create(ctx, "")
}

// Copy copies a database that has no connections. All earlier writes are on disk then, so that the next writer
// does not wait for them.
func (s *Server) Copy(ctx context.Context, database string) (address string, err error) {
	return s.create(ctx, " TEMPLATE "+nameOf(database)+" STRATEGY file_copy")
}

func (s *Server) create(ctx context.Context, how string) (address string, err error) {
	s.made++
	u, err := url.Parse(s.URL)
	if err != nil {
		return "", err
	}
	u.Path = fmt.Sprintf("/bench_%d", s.made)
	err = s.on(ctx, s.URL, func(conn *pgx.Conn) error {
		if _, err := conn.Exec(ctx, "CREATE DATABASE "+nameOf(u.String())+how); err != nil {
			return err
		}
		_, err := conn.Exec(ctx, "CHECKPOINT")
		return err
	})
	return u.String(), err
}

// Drop drops a database, also one with open connections.
func (s *Server) Drop(ctx context.Context, database string) error {
	return s.on(ctx, s.URL, func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "DROP DATABASE "+nameOf(database)+" WITH (FORCE)")
		return err
	})
}

// nameOf gives the name of a database that this file has made.
func nameOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return strings.TrimPrefix(u.Path, "/")
}

func (s *Server) on(ctx context.Context, database string, do func(*pgx.Conn) error) error {
	conn, err := pgx.Connect(ctx, database)
	if err != nil {
		return err
	}
	return errors.Join(do(conn), conn.Close(context.WithoutCancel(ctx)))
}
