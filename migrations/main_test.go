package migrations_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/internal/pgtest"
	"github.com/kuberewind/kuberewind/migrations"
)

// childURL makes the test binary a migrator of that database, which a test can kill.
const childURL = "MIGRATIONS_TEST_CHILD_URL"

func TestMain(m *testing.M) {
	if url := os.Getenv(childURL); url != "" {
		if err := migrations.Up(context.Background(), url, discard()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	pgtest.Main(m)
}

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

// migrate is the setup of databases that begin with the schema.
func migrate(ctx context.Context, conn *pgx.Conn) error {
	return migrations.Up(ctx, conn.Config().ConnString(), discard())
}

// migrated returns the URL of a database with the schema in it, and a superuser's connection to it.
func migrated(t *testing.T) (url string, conn *pgx.Conn) {
	t.Helper()
	db := pgtest.New(t, migrate)
	return db.URL(), db.Connect(t)
}

func newDatabase(t *testing.T) string {
	t.Helper()
	return pgtest.New(t, nil).URL()
}

// connect opens a connection that is closed with the test.
func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// querier is a connection or a transaction.
type querier interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

func run(t *testing.T, conn querier, sql string, args ...any) {
	t.Helper()
	_, err := conn.Exec(t.Context(), sql, args...)
	require.NoError(t, err, sql)
}

// one returns the only row of a query of one column.
func one[T any](t *testing.T, conn querier, sql string, args ...any) T {
	t.Helper()
	rows, err := conn.Query(t.Context(), sql, args...)
	require.NoError(t, err, sql)
	value, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[T])
	require.NoError(t, err, sql)
	return value
}

func column[T any](t *testing.T, conn querier, sql string, args ...any) []T {
	t.Helper()
	rows, err := conn.Query(t.Context(), sql, args...)
	require.NoError(t, err, sql)
	values, err := pgx.CollectRows(rows, pgx.RowTo[T])
	require.NoError(t, err, sql)
	return values
}

// eventually waits until a query about another session returns true.
func eventually(t *testing.T, conn querier, sql string, args ...any) {
	t.Helper()
	require.Eventually(t, func() bool { return one[bool](t, conn, sql, args...) }, 5*time.Minute, 5*time.Millisecond, sql)
}

// dsn returns a connection string in the key=value form, for the server of config.
func dsn(config *pgx.ConnConfig, user, password, database string) string {
	return fmt.Sprintf("host=%s port=%d user=%s password='%s' dbname=%s sslmode=disable", config.Host, config.Port, user, password, database)
}
