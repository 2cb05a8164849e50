package database

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kuberewind/kuberewind/internal/config"
	"github.com/kuberewind/kuberewind/internal/ctxerr"
	"github.com/kuberewind/kuberewind/internal/embedded"
	"github.com/kuberewind/kuberewind/internal/pgdial"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// Database is the PostgreSQL of the configuration: one that runs somewhere, or the embedded one, which is held as long as
// the Database is open.
type Database struct {
	log      *slog.Logger
	url      string // of the configuration
	embedded *embedded.Server
	missed   chan struct{} // see Missed
	lookAt   time.Duration // how often the files of the embedded PostgreSQL are looked at
}

// Open starts or joins the embedded PostgreSQL if that is asked for. Nothing else is contacted.
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

// ErrNoRecord says that an embedded PostgreSQL was never started.
var ErrNoRecord = errors.New("nothing is recorded yet")

// OpenRecord is Open for programs that only read: it makes no embedded PostgreSQL.
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

// Runs reports whether a record can be opened without starting an embedded PostgreSQL. Whether another server answers is not asked.
func Runs(cfg config.Config) (bool, error) {
	if cfg.Database != config.Embedded {
		return true, nil
	}
	return embedded.Runs(Folder(cfg))
}

// Folder is where the embedded PostgreSQL keeps its data.
func Folder(cfg config.Config) string { return filepath.Join(cfg.DataDir, "postgres") }

// URL is where the database is. It holds the password.
func (d *Database) URL() string {
	if d.embedded != nil {
		// The recorder's sessions are known by their names (see renewal): PGAPPNAME must not name them.
		return d.embedded.URL() + "&application_name="
	}
	return d.url
}

// Missed says that the database does not answer. It does not block.
func (d *Database) Missed() {
	select {
	case d.missed <- struct{}{}:
	default: // It has been said already, or the database is not ours to start.
	}
}

// Keep starts the embedded PostgreSQL again when it is missed and has died, and restarts it when its files were replaced, until ctx
// ends. It tells outdated whether the files are others now.
func (d *Database) Keep(ctx context.Context, outdated func(bool)) {
	if d.embedded == nil {
		<-ctx.Done()
		return
	}
	files := &renewal{server: d.embedded, log: d.log, tell: outdated}
	ticker := time.NewTicker(d.lookAt)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			files.look(ctx)
			continue
		case <-d.missed:
		}
		if err := d.embedded.Ensure(ctx); err != nil && ctx.Err() == nil {
			d.log.Error("the embedded PostgreSQL could not be started again", "error", err)
		}
	}
}

const (
	firstAwait = 500 * time.Millisecond
	maxAwait   = 10 * time.Second
)

// Await returns when the database answers, or refuses in a way that another try would not change. A recorder that ended instead would be started
// again later and later by whoever keeps it running, and could come too late for the history when the database is back.
func (d *Database) Await(ctx context.Context) error {
	for wait := firstAwait; ; wait = min(2*wait, maxAwait) {
		conn, err := d.Connect(ctx)
		if err == nil {
			return conn.Close(ctx)
		}
		if class := postgres.ClassOf(err); ctx.Err() != nil || !class.Transient() && class != postgres.Cancelled {
			return err
		}
		d.log.Warn("the database does not answer; waiting for it: nothing is recorded until it does, and what the API server forgets meanwhile will be a gap",
			"wait", wait.String(), "error", err)
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		}
	}
}

// connectTimeout bounds a connection, and what is asked first.
const connectTimeout = 30 * time.Second

var errUnanswered = fmt.Errorf("the database did not answer within %s", connectTimeout)

// Connect opens a connection for a few statements, which may take as long as they need while the server answers. The caller closes it.
func (d *Database) Connect(ctx context.Context) (*pgx.Conn, error) {
	return d.ConnectWith(ctx, pgdial.AskInSilence)
}

// ConnectWith opens a connection whose configuration change has had. The caller closes it.
func (d *Database) ConnectWith(ctx context.Context, change func(*pgx.ConnConfig)) (*pgx.Conn, error) {
	// Not pgx's parser, because a URL may carry parameters of the pool, which the server would refuse.
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

// Clocks gives the database's time, and that of the newest commit of a cluster.
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

// Close lets go of the embedded PostgreSQL; the last one to do so stops it.
func (d *Database) Close() error {
	if d.embedded == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return d.embedded.Stop(ctx)
}

// Lock refuses a second recorder of one cluster where both would use the embedded database. With a database elsewhere the election
// decides.
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
