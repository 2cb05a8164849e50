package embedded

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/internal/pgtest/pgcopy"
)

// copied returns the options of a server that runs from copies of PostgreSQL's files.
func copied(t *testing.T) (Options, *pgcopy.Copy) {
	t.Helper()
	dir := filledDir(t)
	files := pgcopy.Of(t, sharedServer(t).URL(), filepath.Join(filepath.Dir(dir), "copy"))
	o := options(t, dir)
	o.BinDir = files.Bin
	return o, files
}

func replaced(t *testing.T, server *Server) (paths []string) {
	t.Helper()
	found, err := server.Replaced()
	require.NoError(t, err)
	for _, r := range found {
		paths = append(paths, r.Path)
	}
	return paths
}

// session opens a session, which stays open until the test ends or closes it.
func session(t *testing.T, server *Server, name string) *pgx.Conn {
	t.Helper()
	config, err := pgx.ParseConfig(server.URL())
	require.NoError(t, err)
	config.RuntimeParams["application_name"] = name
	conn, err := pgx.ConnectConfig(testContext(t), config)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(testContext(t)) })
	return conn
}

const inPLpgSQL = `DO $$ BEGIN PERFORM 1; END $$`

func TestRenewRestartsAServerFromItsReplacedFiles(t *testing.T) {
	t.Parallel()
	o, files := copied(t)
	server := start(t, o)
	other := start(t, o)
	query(t, server.URL(), "CREATE TABLE t AS SELECT 'kept' AS v", "SELECT v FROM t")
	require.Empty(t, replaced(t, server))
	require.NoError(t, server.Renew(testContext(t)), "there is nothing to do")
	before := server.PID()

	files.Upgrade(t)
	want := []string{filepath.Join(files.Bin, "postgres"), files.Library}
	require.Equal(t, want, replaced(t, server))
	require.Equal(t, want, replaced(t, other), "whichever process started the server")
	require.NoError(t, server.Renew(testContext(t)))
	require.NotEqual(t, before, server.PID())
	require.Empty(t, replaced(t, server))
	require.Empty(t, replaced(t, other))
	after := server.PID()
	require.NoError(t, other.Renew(testContext(t)))
	require.NoError(t, other.Ensure(testContext(t)))
	require.Equal(t, after, other.PID(), "it was restarted once")
	require.Equal(t, "kept", query(t, other.URL(), "SELECT v FROM t"))
}

func TestNewSessionsUseTheLibraryThatTheServerLoadedAtItsStart(t *testing.T) {
	t.Parallel()
	o, files := copied(t)
	server := start(t, o)
	files.BreakLibrary(t)
	require.Equal(t, []string{files.Library}, replaced(t, server))
	require.Equal(t, "1", query(t, server.URL(), inPLpgSQL, "SELECT '1'"))
	files.MendLibrary(t)
	require.Empty(t, replaced(t, server), "the file is the one that it was")
}

func TestRenewDoesNotCutSessionsOfOtherPrograms(t *testing.T) {
	t.Parallel()
	o, files := copied(t)
	server := start(t, o)
	before := server.PID()
	own, others := session(t, server, "own"), session(t, server, "psql")
	files.Upgrade(t)
	err := server.Renew(testContext(t), "own", "own too")
	var busy *BusyError
	require.ErrorAs(t, err, &busy)
	require.Equal(t, 1, busy.Sessions)
	require.Equal(t, before, server.PID())
	require.NotEmpty(t, replaced(t, server))
	_, err = own.Exec(testContext(t), inPLpgSQL)
	require.NoError(t, err)

	require.NoError(t, others.Close(testContext(t)))
	// The server forgets a session a little after its client.
	require.Eventually(t, func() bool {
		err := server.Renew(testContext(t), "own")
		return err == nil || !errors.As(err, &busy)
	}, 5*time.Minute, pollInterval)
	require.NotEqual(t, before, server.PID())
	_, err = own.Exec(testContext(t), inPLpgSQL)
	require.Error(t, err, "the session was cut")
}

func TestReplacedFilesAreReportedForAnAdoptedServer(t *testing.T) {
	o, files := copied(t)
	t.Setenv(BinDirEnv, o.BinDir)
	first := startHolder(t, o.DataDir)
	pid := first.pid(t)
	first.kill(t)
	files.Upgrade(t)
	server := start(t, o)
	require.Equal(t, pid, server.PID())
	require.NotEmpty(t, replaced(t, server))
	require.NoError(t, server.Renew(testContext(t)))
	require.NotEqual(t, pid, server.PID())
}

func TestRenewDoesNotStopAServerIfTheNewBinariesDoNotRun(t *testing.T) {
	t.Parallel()
	o, files := copied(t)
	server := start(t, o)
	before := server.PID()
	program := filepath.Join(files.Bin, "postgres")
	require.NoError(t, os.Remove(program))
	found, err := server.Replaced()
	require.NoError(t, err)
	require.True(t, found[0].Gone())
	require.ErrorContains(t, server.Renew(testContext(t)), "PostgreSQL binaries in "+files.Bin)
	require.Equal(t, before, server.PID())
	require.Equal(t, "1", query(t, server.URL(), "SELECT '1'"))
}
