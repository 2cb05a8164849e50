package embedded

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
)

func TestDataSurviveARestart(t *testing.T) {
	t.Parallel()
	dir := filledDir(t)
	server := start(t, options(t, dir))
	query(t, server.URL(), "CREATE TABLE t AS SELECT 'kept' AS v", "SELECT v FROM t")
	stop(t, server)
	requireAlive(t, dir, false)

	require.Equal(t, "kept", query(t, start(t, options(t, dir)).URL(), "SELECT v FROM t"))
}

func TestTheServerIsSetUpForARecord(t *testing.T) {
	t.Parallel()
	o := options(t, newDir(t))
	o.Throwaway = false
	server := start(t, o)
	for setting, want := range map[string]string{
		"data_checksums": "on", "server_encoding": "UTF8", "fsync": "on", "synchronous_commit": "on",
		"password_encryption": "scram-sha-256", "listen_addresses": "", "logging_collector": "on", "TimeZone": "UTC",
		"max_locks_per_transaction": "256",
	} {
		require.Equal(t, want, query(t, server.URL(), "SHOW "+setting), setting)
	}
	for _, setting := range []string{"default_toast_compression", "wal_compression"} {
		require.Equal(t, "t", query(t, server.URL(), "SELECT (setting = 'lz4' OR 'lz4' <> ALL (enumvals))::text::char FROM pg_settings WHERE name = '"+setting+"'"), setting)
	}
	require.Equal(t, "t", query(t, server.URL(), `SELECT ('B' < 'a')::text::char FROM (VALUES (1)) v`))
	require.Equal(t, superuser, query(t, server.URL(), "SELECT current_database()"))
}

func TestSettingsOfTheUserTakePrecedence(t *testing.T) {
	t.Parallel()
	dir := filledDir(t)
	server := start(t, options(t, dir))
	query(t, server.URL(), "ALTER SYSTEM SET max_wal_size = '333MB'", "SELECT 'done'")
	stop(t, server)
	conf, err := os.OpenFile(filepath.Join(dir, "data", "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = conf.WriteString("checkpoint_timeout = '7min'\n")
	require.NoError(t, errors.Join(err, conf.Close()))

	server = start(t, options(t, dir))
	require.Equal(t, "333MB", query(t, server.URL(), "SHOW max_wal_size"))
	require.Equal(t, "7min", query(t, server.URL(), "SHOW checkpoint_timeout"))
}

func TestOnlyTheUserCanConnect(t *testing.T) {
	t.Parallel()
	server := sharedServer(t)
	u, err := url.Parse(server.URL())
	require.NoError(t, err)
	u.User = url.UserPassword(superuser, "wrong")
	_, err = pgx.Connect(testContext(t), u.String())
	var refusal *pgconn.PgError
	require.ErrorAs(t, err, &refusal)
	require.Equal(t, pgerrcode.InvalidPassword, refusal.Code)

	for path, mode := range map[string]os.FileMode{"run": 0o700, "data": 0o700, "log": 0o700, "pgpass": 0o600, "server.lock": 0o600} {
		info, err := os.Stat(filepath.Join(server.layout.dir, path))
		require.NoError(t, err)
		require.Equal(t, mode, info.Mode().Perm(), path)
	}
}

func TestAsRootTheServerRunsUnderAnotherAccount(t *testing.T) {
	t.Parallel()
	asRoot(t)
	server := sharedServer(t)
	dir := server.layout.dir
	require.NotZero(t, server.programs.account.uid)
	require.Contains(t, serverAccounts, server.programs.account.name)
	for _, path := range []string{"data", "run", "log", "data/base", "run/.s.PGSQL.5432"} {
		uid, _, err := owner(filepath.Join(dir, path))
		require.NoError(t, err)
		require.Equal(t, server.programs.account.uid, uid, path)
	}
	uid, _, err := owner(filepath.Join(dir, "pgpass"))
	require.NoError(t, err)
	require.Zero(t, uid)
	uid, _, err = owner("/proc/" + strconv.Itoa(server.PID()))
	require.NoError(t, err)
	require.Equal(t, server.programs.account.uid, uid)
}

func TestASessionActsAsTheRoleOfItsURL(t *testing.T) {
	t.Parallel()
	server := sharedServer(t)
	query(t, server.URL(), "CREATE TABLE t (v text)", `CREATE ROLE "the auditor"`, `GRANT SELECT ON t TO "the auditor"`, "SELECT 'done'")
	t.Cleanup(func() { query(t, server.URL(), "DROP TABLE t", `DROP ROLE "the auditor"`, "SELECT 'done'") })
	asAuditor := server.URL("the auditor")
	require.Equal(t, "the auditor", query(t, asAuditor, "SELECT current_user"))
	require.Equal(t, "the auditor", query(t, asAuditor, "SET ROLE NONE", "RESET ROLE", "SELECT current_user"))
	require.Equal(t, "0", query(t, asAuditor, "SELECT count(*)::text FROM t"))

	conn, err := pgx.Connect(testContext(t), asAuditor)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(testContext(t))) }()
	_, err = conn.Exec(testContext(t), "DELETE FROM t")
	var refusal *pgconn.PgError
	require.ErrorAs(t, err, &refusal)
	require.Equal(t, pgerrcode.InsufficientPrivilege, refusal.Code)
}

func TestTheLocksOfADataDirectoryAreExclusive(t *testing.T) {
	t.Parallel()
	first := sharedServer(t)
	second := start(t, options(t, first.layout.dir))
	lock, err := first.Lock("cluster/../a b")
	require.NoError(t, err)
	_, err = second.Lock("cluster/../a b")
	var held *HeldError
	require.ErrorAs(t, err, &held)
	host, err := os.Hostname()
	require.NoError(t, err)
	require.Contains(t, held.Error(), "pid "+strconv.Itoa(os.Getpid())+" on "+host)
	holder, err := second.Holder("cluster/../a b")
	require.NoError(t, err)
	require.Equal(t, held.Holder, holder)
	holder, err = second.Holder("another cluster")
	require.NoError(t, err)
	require.Empty(t, holder)

	other, err := second.Lock("another cluster")
	require.NoError(t, err)
	require.NoError(t, other.Unlock())
	require.NoError(t, lock.Unlock())
	require.NoError(t, lock.Unlock())
	holder, err = first.Holder("cluster/../a b")
	require.NoError(t, err)
	require.Empty(t, holder)
	lock, err = second.Lock("cluster/../a b")
	require.NoError(t, err)
	require.NoError(t, lock.Unlock())
}

func TestPSQLConnectsWhateverTheEnvironmentSets(t *testing.T) {
	t.Setenv("PGPASSWORD", "wrong")
	t.Setenv("PGHOST", "localhost")
	t.Setenv("PGDATABASE", "nonsense")
	server := sharedServer(t)
	cmd, err := server.PSQL(testContext(t), "-XAtc", "SELECT current_user || ' ' || current_database()")
	require.NoError(t, err)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	require.Equal(t, "kuberewind kuberewind\n", string(out))
}

// listen listens on a port that is free again after it is closed. It uses no port that the system gives to outgoing connections (32768 and
// up on Linux), because such a port may be taken at once.
func listen(t *testing.T) net.Listener {
	t.Helper()
	err := errors.New("no port was tried")
	for tries := 0; err != nil && tries < 100; tries++ {
		var listener net.Listener
		if listener, err = net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(10_000+rand.IntN(10_000)))); err == nil {
			return listener
		}
	}
	require.NoError(t, err)
	return nil
}

func TestATCPPortIsOpenedOnlyIfConfiguredAndOnLoopback(t *testing.T) {
	t.Parallel()
	listener := listen(t)
	port := listener.Addr().(*net.TCPAddr).Port
	o := options(t, filledDir(t))
	o.Port = port

	_, err := Start(testContext(t), o)
	require.ErrorContains(t, err, "another program listens on the port")
	require.ErrorContains(t, err, "127.0.0.1")
	requireAlive(t, o.DataDir, false)

	require.NoError(t, listener.Close())
	server := start(t, o)
	config, err := pgx.ParseConfig(server.URL())
	require.NoError(t, err)
	overTCP := url.URL{Scheme: "postgres", User: url.UserPassword(superuser, config.Password), Path: "/" + superuser,
		Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), RawQuery: "sslmode=disable"}
	require.Equal(t, "127.0.0.1", query(t, overTCP.String(), "SHOW listen_addresses"))

	o.Port = port ^ 1
	_, err = Start(testContext(t), o)
	require.ErrorContains(t, err, "already runs without TCP port")
	require.Equal(t, "1", query(t, server.URL(), "SELECT '1'"), "the refused one must not stop it")
}

func TestALongPathGetsAShortSocket(t *testing.T) {
	t.Parallel()
	parent := newDir(t)
	dir := filepath.Join(parent, strings.Repeat("long 'and \"odd$HOME,", 5), "dir")
	server := start(t, options(t, dir))
	require.True(t, strings.HasPrefix(server.cluster.socketDir, "/tmp/"))
	require.Equal(t, "1", query(t, server.URL(), "SELECT '1'"))
	stop(t, server)
	require.NoDirExists(t, server.cluster.socketDir)
}

func TestAPathWithSpecialCharactersWorks(t *testing.T) {
	t.Parallel()
	server := start(t, options(t, filepath.Join(newDir(t), `a"b 'c,$(d)*[`)))
	require.Equal(t, "1", query(t, server.URL(), "SELECT '1'"))
	require.NoError(t, syscall.Kill(server.PID(), syscall.SIGKILL))
	require.NoError(t, server.Gone(testContext(t)), "a dying server may still answer")
	require.NoError(t, server.Ensure(testContext(t)))
	require.Equal(t, "1", query(t, server.URL(), "SELECT '1'"))
}

func TestASecondStopDoesNothing(t *testing.T) {
	t.Parallel()
	dir := filledDir(t)
	server, other := start(t, options(t, dir)), start(t, options(t, dir))
	stop(t, server)
	stop(t, server)
	require.Equal(t, "1", query(t, other.URL(), "SELECT '1'"))
	require.ErrorContains(t, server.Ensure(testContext(t)), "no longer holds")
}

func TestACancelledStartStopsAllItsProcesses(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	ctx, cancel := context.WithCancel(testContext(t))
	o := options(t, dir)
	o.Logger = cancelOn(o.Logger, "making the data directory", cancel)
	_, err := Start(ctx, o)
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, layout{dir}.presence().awaitGone(testContext(t)))

	require.Equal(t, "1", query(t, start(t, options(t, dir)).URL(), "SELECT '1'"))
	require.NoDirExists(t, filepath.Join(dir, "data.init"))
}
