package pgtest

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
)

func withTable(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, "CREATE TABLE t (v text)")
	return err
}

var counted atomic.Int64

func countedWithTable(ctx context.Context, conn *pgx.Conn) error {
	counted.Add(1)
	return withTable(ctx, conn)
}

func requireCode(t *testing.T, code string, err error) {
	t.Helper()
	var refusal *pgconn.PgError
	require.ErrorAs(t, err, &refusal)
	require.Equal(t, code, refusal.Code, refusal.Message)
}

func value(t *testing.T, conn interface {
	QueryRow(context.Context, string, ...any) pgx.Row
}, sql string) string {
	t.Helper()
	var v string
	require.NoError(t, conn.QueryRow(t.Context(), sql).Scan(&v))
	return v
}

func TestEachTestHasItsOwnDatabaseFromOneSetup(t *testing.T) {
	for range 3 {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			db := New(t, countedWithTable)
			require.Equal(t, "0", value(t, db.Pool(t), "SELECT count(*)::text FROM t"))
			db.Exec(t, "INSERT INTO t VALUES ('mine')")
			require.Equal(t, "mine", value(t, db.Connect(t), "SELECT v FROM t"))
		})
	}
	t.Cleanup(func() { require.EqualValues(t, 1, counted.Load()) })
}

func TestADatabaseAndItsRolesAreGoneAfterTheTest(t *testing.T) {
	t.Parallel()
	var name, role string
	t.Run("the test", func(t *testing.T) {
		db := New(t, nil)
		name = db.Name()
		login := db.Login(t)
		db.Exec(t, "CREATE TABLE t (v text)", "GRANT ALL ON t TO PUBLIC")
		conn, err := pgx.Connect(t.Context(), login)
		require.NoError(t, err)
		role = conn.Config().User
		_, err = conn.Exec(t.Context(), "INSERT INTO t VALUES ('by the role')")
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, conn.Close(context.Background())) })
	})
	conn := New(t, nil).Connect(t)
	require.Equal(t, "0", value(t, conn, "SELECT count(*)::text FROM pg_database WHERE datname = '"+name+"'"))
	require.Equal(t, "0", value(t, conn, "SELECT count(*)::text FROM pg_roles WHERE rolname = '"+role+"'"))
}

func TestALoginMayDoNoMoreThanItsRoles(t *testing.T) {
	t.Parallel()
	db := New(t, withTable)
	conn, err := pgx.Connect(t.Context(), db.Login(t, "pg_read_all_data"))
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(context.Background())) }()
	require.Equal(t, "0", value(t, conn, "SELECT count(*)::text FROM t"))
	_, err = conn.Exec(t.Context(), "INSERT INTO t VALUES ('no')")
	requireCode(t, pgerrcode.InsufficientPrivilege, err)
	require.Equal(t, "off", value(t, conn, "SHOW is_superuser"))
}

func TestConnectionsCanBeCut(t *testing.T) {
	t.Parallel()
	db, other := New(t, nil), New(t, nil)
	first, second, spared := db.Connect(t), db.Connect(t), other.Connect(t)
	require.Equal(t, 2, db.CutConnections(t))
	for _, conn := range []*pgx.Conn{first, second} {
		_, err := conn.Exec(t.Context(), "SELECT 1")
		require.Error(t, err)
	}
	require.Equal(t, "1", value(t, spared, "SELECT '1'"))
}

func TestConnectionsCanBeRefused(t *testing.T) {
	t.Parallel()
	db := New(t, nil)
	open := db.Connect(t)
	db.RefuseConnections(t)
	_, err := pgx.Connect(t.Context(), db.URL())
	requireCode(t, pgerrcode.ObjectNotInPrerequisiteState, err)
	require.Equal(t, "1", value(t, open, "SELECT '1'"))
	db.AllowConnections(t)
	require.Equal(t, "1", value(t, db.Connect(t), "SELECT '1'"))
}

func TestConnectionsCanBeLimited(t *testing.T) {
	t.Parallel()
	db := New(t, nil)
	login := db.Login(t)
	db.LimitConnections(t, 1)
	first, err := pgx.Connect(t.Context(), login)
	require.NoError(t, err)
	defer func() { require.NoError(t, first.Close(context.Background())) }()
	_, err = pgx.Connect(t.Context(), login)
	requireCode(t, pgerrcode.TooManyConnections, err)
	db.LimitConnections(t, -1)
	second, err := pgx.Connect(t.Context(), login)
	require.NoError(t, err)
	require.NoError(t, second.Close(t.Context()))
}

func TestADatabaseCanBeReadOnly(t *testing.T) {
	t.Parallel()
	db := New(t, withTable)
	db.ReadOnly(t)
	conn := db.Connect(t)
	_, err := conn.Exec(t.Context(), "INSERT INTO t VALUES ('no')")
	requireCode(t, pgerrcode.ReadOnlySQLTransaction, err)
	db.ReadWrite(t)
	db.Exec(t, "INSERT INTO t VALUES ('yes')")
}

func TestAPrivateServerCanBeStoppedKilledAndRestarted(t *testing.T) {
	t.Parallel()
	server := StartServer(t)
	db := server.New(t, withTable)
	db.Exec(t, "INSERT INTO t VALUES ('kept')")
	for name, fault := range map[string]func(testing.TB){"stop": server.Stop, "kill": server.Kill} {
		conn := db.Connect(t)
		fault(t)
		_, err := conn.Exec(t.Context(), "SELECT 1")
		require.Error(t, err, name)
		_, err = pgx.Connect(t.Context(), db.URL())
		require.Error(t, err, name)
		server.Start(t)
		require.Equal(t, "kept", value(t, db.Connect(t), "SELECT v FROM t"), name)
	}
	server.Restart(t)
	require.Equal(t, "kept", value(t, db.Connect(t), "SELECT v FROM t"))
	server.Kill(t) // the cleanup must work after a kill
}

func TestADiskCanBeFilled(t *testing.T) {
	t.Parallel()
	server := StartServerOnDisk(t, 200<<20)
	db := server.New(t, withTable)
	conn := db.Connect(t)
	server.FillDisk(t)
	var err error
	for range 100 {
		if _, err = conn.Exec(t.Context(), "INSERT INTO t SELECT repeat('x', 1000) FROM generate_series(1, 100)"); err != nil {
			break
		}
	}
	requireCode(t, pgerrcode.DiskFull, err)
	server.FreeDisk(t)
	_, err = conn.Exec(t.Context(), "INSERT INTO t SELECT repeat('x', 1000) FROM generate_series(1, 1000)")
	require.NoError(t, err)
}

func TestAFailedSetupFailsEveryTestThatNeedsIt(t *testing.T) {
	t.Parallel()
	server := Shared(t)
	failing := func(context.Context, *pgx.Conn) error { return errors.New("no luck") }
	for range 2 {
		require.ErrorContains(t, server.template(failing).err, "no luck")
	}
}

func TestAnExternalServerIsUsedAndCleanedUp(t *testing.T) {
	t.Parallel()
	host := New(t, nil) // its URL stands for a server of another owner
	external, err := useExternal(t.Context(), host.URL())
	require.NoError(t, err)
	db := external.New(t, withTable)
	require.Equal(t, "0", value(t, db.Connect(t), "SELECT count(*)::text FROM t"))
	require.NoError(t, external.drop(t.Context(), db.name, nil))
	require.NoError(t, external.close(t.Context()))
	require.Equal(t, "0", value(t, host.Connect(t), "SELECT count(*)::text FROM pg_database WHERE datname LIKE '"+external.prefix+"%'"))

	_, err = useExternal(t.Context(), host.Login(t))
	require.ErrorContains(t, err, "may not create databases")
	_, err = useExternal(t.Context(), "host=/tmp user=me")
	require.ErrorContains(t, err, "has to be a URL")
}
