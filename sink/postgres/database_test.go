package postgres

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// A database holds an empty record.
type database struct {
	*pgtest.Database
	url   string
	admin *pgxpool.Pool // as its owner
}

func newDatabase(t testing.TB) *database { return databaseOn(t, pgtest.Shared(t)) }

func databaseOn(t testing.TB, server *pgtest.Server) *database {
	t.Helper()
	db := &database{Database: server.New(t, pgtest.EmptyRecord)}
	db.url, db.admin = db.URL(), db.Pool(t)
	return db
}

func (db *database) exec(t testing.TB, sql string, args ...any) {
	t.Helper()
	_, err := db.admin.Exec(context.Background(), sql, args...)
	require.NoError(t, err, sql)
}

// one returns the only value of a query.
func one[T any](t testing.TB, db *database, sql string, args ...any) (value T) {
	t.Helper()
	require.NoError(t, db.admin.QueryRow(context.Background(), sql, args...).Scan(&value), sql)
	return value
}

// all returns the only column of a query.
func all[T any](t testing.TB, db *database, sql string, args ...any) []T {
	t.Helper()
	rows, err := db.admin.Query(context.Background(), sql, args...)
	require.NoError(t, err, sql)
	values, err := pgx.CollectRows(rows, pgx.RowTo[T])
	require.NoError(t, err, sql)
	return values
}
