package database

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kuberewind/kuberewind/internal/config"
	"github.com/kuberewind/kuberewind/internal/ctxerr"
	"github.com/kuberewind/kuberewind/internal/embedded"
	"github.com/kuberewind/kuberewind/internal/pgdial"
	"github.com/kuberewind/kuberewind/migrations"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// Database is the PostgreSQL of the configuration: a server elsewhere, or the embedded one. An open Database keeps the embedded server
// running.
type Database struct {
	log      *slog.Logger
	url      string // from the configuration
	embedded *embedded.Server
	missed   chan struct{} // see Missed
	lookAt   time.Duration // how often Keep checks the files of the embedded PostgreSQL
}

// Open starts or joins the embedded PostgreSQL if the configuration names it. It does not contact a database elsewhere.
func Open(ctx context.Context, cfg config.Config, log *slog.Logger) (*Database, error) {
	if cfg.Database != config.Embedded {
		return &Database{log: log, url: cfg.Database}, nil
	}
	server, err := embedded.Start(ctx, embedded.Options{DataDir: Folder(cfg), Logger: log})
	if err != nil {
		return nil, fmt.Errorf("embedded PostgreSQL: %w", err)
	}
	return &Database{log: log, url: cfg.Database, embedded: server, missed: make(chan struct{}, 1), lookAt: lookAtFiles}, nil
}

// ErrNoRecord says that the embedded PostgreSQL was never started.
var ErrNoRecord = errors.New("nothing is recorded yet")

// OpenRecord is Open for programs that only read. If the embedded PostgreSQL was never started, it returns ErrNoRecord.
func OpenRecord(ctx context.Context, cfg config.Config, log *slog.Logger) (*Database, error) {
	if cfg.Database == config.Embedded {
		made, err := embedded.HasData(Folder(cfg))
		if err != nil {
			return nil, fmt.Errorf("embedded PostgreSQL: %w", err)
		}
		if !made {
			return nil, fmt.Errorf(`%w in %s: start "recorder run", or say with --data-dir or --database where the record is`, ErrNoRecord, cfg.DataDir)
		}
	}
	return Open(ctx, cfg, log)
}

// Runs reports whether a record can be opened without starting an embedded PostgreSQL. It returns true for a database elsewhere and does
// not contact it.
func Runs(cfg config.Config) (bool, error) {
	if cfg.Database != config.Embedded {
		return true, nil
	}
	return embedded.Runs(Folder(cfg))
}

// Folder returns the directory of the embedded PostgreSQL.
func Folder(cfg config.Config) string { return filepath.Join(cfg.DataDir, "postgres") }

// URL returns the URL of the database, with the password.
func (d *Database) URL() string {
	if d.embedded != nil {
		// renewal recognizes the recorder's sessions by their names, so PGAPPNAME must not change them.
		return d.embedded.URL() + "&application_name="
	}
	return d.url
}

const (
	firstAwait = 500 * time.Millisecond
	maxAwait   = 10 * time.Second
)

// Await returns when the database answers. It returns an error if the database refuses for a reason that a retry would not change. If the
// recorder ended instead of waiting, its supervisor would restart it with growing delays. It could then start too late: the API server
// may have dropped the history by the time the database is back.
func (d *Database) Await(ctx context.Context) error {
	for wait := firstAwait; ; wait = min(2*wait, maxAwait) {
		conn, err := d.Connect(ctx)
		if err == nil {
			return conn.Close(ctx)
		}
		if class := postgres.ClassOf(err); ctx.Err() != nil || !class.Transient() && class != postgres.Cancelled {
			return err
		}
		d.log.Warn("the database does not answer; waiting for it: bring it back, or correct --database and restart the recorder",
			"why", "a spool folder of this cluster exists", "wait", wait.String(), "error", err)
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		}
	}
}

// connectTimeout bounds the opening of a connection, and the first queries at the start.
const connectTimeout = 30 * time.Second

var errUnanswered = fmt.Errorf("the database did not answer within %s", connectTimeout)

// Connect opens a connection for a few statements. A statement may take as long as it needs while the server still answers. The caller
// closes the connection.
func (d *Database) Connect(ctx context.Context) (*pgx.Conn, error) {
	return d.ConnectWith(ctx, pgdial.AskInSilence)
}

// ConnectWith opens a connection. It calls change on the configuration first. The caller closes the connection.
func (d *Database) ConnectWith(ctx context.Context, change func(*pgx.ConnConfig)) (*pgx.Conn, error) {
	// pgx's own parser would keep the parameters of the pool in the URL, and the server would refuse them.
	settings, err := pgdial.ParseConfig(d.URL())
	if err != nil {
		return nil, fmt.Errorf("database %s: %w", config.MaskURL(d.URL()), config.Plain(err))
	}
	change(settings.ConnConfig)
	ctx, cancel := context.WithTimeoutCause(ctx, connectTimeout, errUnanswered)
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, settings.ConnConfig)
	if err != nil && ctx.Err() == nil && pgconn.Timeout(err) {
		err = fmt.Errorf("the database did not answer within %s: %w", settings.ConnConfig.ConnectTimeout, err)
	}
	if err != nil {
		return nil, d.named(ctxerr.Explain(ctx, err))
	}
	return conn, nil
}

// Clocks returns the time of the database, and the time of the newest commit of a cluster.
func (d *Database) Clocks(ctx context.Context, clusterUID string) (database, record time.Time, err error) {
	conn, err := d.Connect(ctx)
	if err != nil {
		return database, record, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	limited, cancel := context.WithTimeoutCause(ctx, connectTimeout, errUnanswered)
	defer cancel()
	if database, record, err = postgres.ReadClocks(limited, conn, clusterUID); err != nil {
		return database, record, ctxerr.Explain(limited, err)
	}
	return database, record, nil
}

// Close releases the embedded PostgreSQL. The last process that releases it stops the server.
func (d *Database) Close() error {
	if d.embedded == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return d.embedded.Stop(ctx)
}

// Lock refuses a second recorder of one cluster if both use the same embedded database. With a database elsewhere it does nothing,
// because the election decides.
func (d *Database) Lock(clusterUID string) (unlock func() error, err error) {
	if d.embedded == nil {
		return func() error { return nil }, nil
	}
	lock, err := d.embedded.Lock(clusterUID)
	var held *embedded.HeldError
	if errors.As(err, &held) {
		return nil, fmt.Errorf("this cluster is being recorded into this embedded database already (%w): stop that recorder, or give this one another --data-dir or --database", err)
	}
	if err != nil {
		return nil, err
	}
	return lock.Unlock, nil
}

// named adds the address of the database to an error, without its password. If it knows what to do, it adds that, too.
func (d *Database) named(err error) error {
	err = config.Plain(err)
	if advice := advise(err); advice != "" {
		err = fmt.Errorf("%w (%s)", err, advice)
	}
	return fmt.Errorf("database %s: %w", config.MaskURL(d.url), err)
}

// Refused adds the address of the database, and what to do, to the error of a statement. It returns other errors unchanged. The error of
// a connection names the database already.
func (d *Database) Refused(err error) error {
	var refusal *pgconn.PgError
	if !errors.As(err, &refusal) || errors.As(err, new(*pgconn.ConnectError)) {
		return err
	}
	if refusal.Code == pgerrcode.InsufficientPrivilege {
		err = fmt.Errorf("%w (the login needs to be a member of %s: run \"recorder migrate\")", err, migrations.WriterRole)
	}
	return d.named(err)
}
