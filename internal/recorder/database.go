package recorder

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
	"github.com/kuberewind/kuberewind/internal/embedded"
	"github.com/kuberewind/kuberewind/internal/pgdial"
	"github.com/kuberewind/kuberewind/migrations"
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

// OpenDatabase starts or joins the embedded PostgreSQL where that is asked for. Nothing else is contacted.
func OpenDatabase(ctx context.Context, cfg config.Config, log *slog.Logger) (*Database, error) {
	if cfg.Database != config.Embedded {
		return &Database{log: log, url: cfg.Database}, nil
	}
	server, err := embedded.Start(ctx, embedded.Options{DataDir: postgresDir(cfg), Logger: log})
	if err != nil {
		return nil, fmt.Errorf("embedded PostgreSQL: %w", err)
	}
	return &Database{log: log, url: cfg.Database, embedded: server, missed: make(chan struct{}, 1), lookAt: lookAtFiles}, nil
}

// errNoRecord says that an embedded PostgreSQL was never started.
var errNoRecord = errors.New("nothing is recorded yet")

// OpenRecord is OpenDatabase for those who only read: it makes no embedded PostgreSQL.
func OpenRecord(ctx context.Context, cfg config.Config, log *slog.Logger) (*Database, error) {
	if cfg.Database == config.Embedded {
		made, err := embedded.HasData(postgresDir(cfg))
		if err != nil {
			return nil, fmt.Errorf("embedded PostgreSQL: %w", err)
		}
		if !made {
			return nil, fmt.Errorf(`%w in %s: start "recorder run", or say with --data-dir or --database where the record is`, errNoRecord, cfg.DataDir)
		}
	}
	return OpenDatabase(ctx, cfg, log)
}

// RecordRuns reports whether a record can be opened without starting an embedded PostgreSQL. Whether another server answers is not asked.
func RecordRuns(cfg config.Config) (bool, error) {
	if cfg.Database != config.Embedded {
		return true, nil
	}
	return embedded.Runs(postgresDir(cfg))
}

func postgresDir(cfg config.Config) string { return filepath.Join(cfg.DataDir, "postgres") }

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

var errUnanswered = fmt.Errorf("the database did not answer within %s", connectTimeout)

// Connect opens a connection for a few statements, which may take as long as they need while the server answers. The caller closes it.
func (d *Database) Connect(ctx context.Context) (*pgx.Conn, error) {
	return d.connect(ctx, pgdial.AskInSilence)
}

// connect opens a connection whose configuration change has had. The caller closes it.
func (d *Database) connect(ctx context.Context, change func(*pgx.ConnConfig)) (*pgx.Conn, error) {
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
		return nil, d.named(withCause(ctx, err))
	}
	return conn, nil
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
// decides, see elect.
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

// rolesTimeout is for a few statements, and waiting for others who do the same.
const rolesTimeout = time.Minute

// Migrate brings schema and roles up to date. It returns the SQL that somebody with more rights has to run for the roles.
func (d *Database) Migrate(ctx context.Context) (missing string, err error) {
	// Up waits for locks for as long as it takes. A server that is not there is named in time, by this.
	conn, err := d.Connect(ctx)
	if err != nil {
		return "", err
	}
	err = migrations.Up(ctx, d.URL(), d.log)
	if err == nil {
		limited, cancel := context.WithTimeoutCause(ctx, rolesTimeout, fmt.Errorf("the roles of the record were not looked up or made within %s", rolesTimeout))
		missing, err = migrations.Roles(limited, conn)
		if err != nil {
			err = withCause(limited, err)
		}
		cancel()
	}
	if err != nil {
		err = d.named(err)
	}
	return missing, errors.Join(err, conn.Close(context.WithoutCancel(ctx)))
}

// named adds to an error which database it is about and, as far as that is known, what leads out of it.
func (d *Database) named(err error) error {
	err = config.Plain(err)
	if advice := advise(err); advice != "" {
		err = fmt.Errorf("%w (%s)", err, advice)
	}
	return fmt.Errorf("database %s: %w", config.MaskURL(d.url), err)
}

// refused is named for a statement on a connection. The error of connecting has its name already.
func (d *Database) refused(err error) error {
	var refusal *pgconn.PgError
	if !errors.As(err, &refusal) || errors.As(err, new(*pgconn.ConnectError)) {
		return err
	}
	if refusal.Code == pgerrcode.InsufficientPrivilege {
		err = fmt.Errorf("%w (the login needs to be a member of %s: run \"recorder migrate\")", err, migrations.WriterRole)
	}
	return d.named(err)
}

func advise(err error) string {
	var refusal *pgconn.PgError
	switch {
	case errors.As(err, &refusal):
		return adviceByCode[refusal.Code]
	case errors.As(err, new(*pgconn.ConnectError)):
		return "does PostgreSQL run there? --database says where it is"
	}
	return ""
}

var adviceByCode = map[string]string{
	pgerrcode.InvalidPassword:                   "check the user and the password in --database",
	pgerrcode.InvalidAuthorizationSpecification: "check the user and the password in --database",
	pgerrcode.InvalidCatalogName:                "make it with CREATE DATABASE, or name another one in --database",
	pgerrcode.TooManyConnections:                "a recorder needs a few: raise the limit of the database, the role or the server",
	pgerrcode.ReadOnlySQLTransaction:            "this server takes no writes: name the primary in --database, or lift default_transaction_read_only",
}

// Ready migrates the database where that is allowed, else checks that it need not be.
func (d *Database) Ready(ctx context.Context, migrate bool) error {
	if d.embedded != nil || migrate {
		missing, err := d.Migrate(ctx)
		if err == nil && missing != "" {
			d.log.Warn("the roles of the record are missing and this login may not make them; recorder migrate prints the SQL")
		}
		return err
	}
	conn, err := d.Connect(ctx)
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeoutCause(ctx, connectTimeout, errUnanswered)
	defer cancel()
	if err = migrations.Check(limited, conn); err != nil {
		err = d.named(withCause(limited, err))
	}
	return errors.Join(err, conn.Close(context.WithoutCancel(ctx)))
}
