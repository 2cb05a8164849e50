package migrations

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/golang-migrate/migrate/v4"
	"github.com/golang-migrate/migrate/v4/database"
	pgxdriver "github.com/golang-migrate/migrate/v4/database/pgx/v5"
	"github.com/golang-migrate/migrate/v4/source/iofs"
	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5"

	"github.com/kuberewind/kuberewind/internal/pgdial"
)

// closeTimeout bounds closing a connection to a server that may be gone.
const closeTimeout = 5 * time.Second

// probe is the connection with which a migrator reads the database. golang-migrate works on another one.
type probe struct {
	config *pgx.ConnConfig
	conn   *pgx.Conn
}

func openProbe(ctx context.Context, url string) (*probe, error) {
	// Not pgx's parser, because a URL may carry parameters of the pool, which the server would refuse.
	config, err := pgdial.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	probing := config.ConnConfig.Copy() // a step of the migration may take long without an answer
	pgdial.EndSilence(probing)
	conn, err := pgx.ConnectConfig(ctx, probing)
	if err != nil {
		return nil, err
	}
	return &probe{config: config.ConnConfig, conn: conn}, nil
}

// close closes the connection even if ctx has ended.
func (p *probe) close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	_ = p.conn.Close(ctx) // no data is pending
}

// prepare returns an error for a server that cannot hold a record. It makes the schema in which golang-migrate keeps
// its table, and returns an error for the schema of another role.
func (p *probe) prepare(ctx context.Context) error {
	var number int
	var version, encoding string
	var exists bool
	err := p.conn.QueryRow(ctx, `SELECT current_setting('server_version_num')::int, current_setting('server_version'),
		current_setting('server_encoding'), to_regnamespace('kuberewind') IS NOT NULL`).Scan(&number, &version, &encoding, &exists)
	switch {
	case err != nil:
		return err
	case number < 150000:
		return fmt.Errorf("PostgreSQL 15 or newer is needed, the server is %s", version)
	case encoding != "UTF8":
		return fmt.Errorf("the database has the encoding %s, and UTF8 is needed: make it with CREATE DATABASE ... ENCODING 'UTF8' TEMPLATE template0", encoding)
	case !exists:
		_, err = p.conn.Exec(ctx, "CREATE SCHEMA IF NOT EXISTS kuberewind")
		if err != nil && !hasCode(err, pgerrcode.UniqueViolation, pgerrcode.DuplicateSchema) { // else another session was faster
			return err
		}
	}
	own, err := p.ownership(ctx) // after the schema was made: another role may have been faster
	if err != nil {
		return err
	}
	return own.mayMigrate()
}

// session is golang-migrate at work on one connection.
type session struct {
	connector *boundConnector
	db        *sql.DB
	migrate   *migrate.Migrate
}

func (p *probe) open(ctx context.Context, before string, log *slog.Logger) (*session, error) {
	connector := newBoundConnector(ctx, p.config)
	s := &session{connector: connector, db: sql.OpenDB(connector)}
	s.db.SetMaxOpenConns(1)
	inner, err := pgxdriver.WithInstance(s.db, &pgxdriver.Config{DatabaseName: p.config.Database, SchemaName: Schema})
	if err != nil {
		s.close()
		return nil, plain(err)
	}
	steps, err := iofs.New(files, ".")
	if err != nil {
		s.close()
		return nil, err
	}
	applied := func() (int, error) { return Version(ctx, p.conn) }
	s.migrate, err = migrate.NewWithInstance("files", steps, "pgx5", &truthful{Driver: inner, applied: applied, before: before, log: log})
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// close also closes the connections that golang-migrate's driver does not close after an error.
func (s *session) close() {
	_ = s.db.Close() // no data is pending
	s.connector.close()
}

// plain extracts the server's error from golang-migrate's, which does not unwrap and quotes the whole file.
func plain(err error) error {
	var value database.Error
	var pointer *database.Error
	switch {
	case errors.As(err, &value) && value.OrigErr != nil:
		return fmt.Errorf("line %d: %w", value.Line, value.OrigErr)
	case errors.As(err, &pointer) && pointer.OrigErr != nil:
		return pointer.OrigErr
	default:
		return err
	}
}
