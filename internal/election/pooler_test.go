package election

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/internal/pgtest"
)

// pooler starts PgBouncer in transaction mode with one session of the database for all clients. It returns the URL of PgBouncer.
func pooler(t *testing.T, db *pgtest.Database) (url string) {
	t.Helper()
	program, err := exec.LookPath("pgbouncer")
	if err != nil { // Debian installs it there, and an ordinary user's PATH does not have that folder
		program, err = exec.LookPath("/usr/sbin/pgbouncer")
	}
	if err != nil {
		const missing = "PgBouncer is not installed: run \"make setup\" as root, or install the package pgbouncer"
		require.NotEqual(t, "true", os.Getenv("CI"), missing)
		t.Skip(missing + "; TestEachLookMayBeOnAnotherConnection shows the same without it")
	}
	config, err := pgx.ParseConfig(db.URL())
	require.NoError(t, err)
	ini, port := filepath.Join(t.TempDir(), "pgbouncer.ini"), freePort(t)
	require.NoError(t, os.WriteFile(ini, fmt.Appendf(nil, `[databases]
pooled = host=%s port=%d dbname=%s user=%s password='%s'
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 1
`, config.Host, config.Port, config.Database, config.User, config.Password, port), 0o600))
	args := []string{ini}
	if os.Getuid() == 0 { // PgBouncer refuses to run as root
		args = []string{"-u", accountOf(t, config.Host), ini}
	}
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Stderr = t.Output()
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Wait() }) // the end of the test's context kills it
	url = fmt.Sprintf("host=127.0.0.1 port=%d dbname=pooled user=pooled sslmode=disable", port)
	require.Eventually(t, func() bool {
		conn, err := pgx.Connect(t.Context(), url)
		return err == nil && conn.Close(t.Context()) == nil
	}, 5*time.Minute, 10*time.Millisecond)
	return url
}

// accountOf returns the name of the owner of the directory with the server's socket.
func accountOf(t *testing.T, dir string) string {
	t.Helper()
	info, err := os.Stat(dir)
	if err != nil {
		return "nobody" // The server listens on an address, so there is no directory.
	}
	owner, err := user.LookupId(fmt.Sprint(info.Sys().(*syscall.Stat_t).Uid))
	require.NoError(t, err)
	return owner.Username
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	return l.Addr().(*net.TCPAddr).Port
}

func TestAnElectionWorksThroughAPooler(t *testing.T) {
	db := pgtest.New(t, pgtest.EmptyRecord)
	url := pooler(t, db)
	pooled := func(o *Options) { o.Connect = at(url) }
	first := join(t, db, "first/1", pooled)
	first.awaitElected(t)
	second := join(t, db, "second/2", pooled)
	require.Equal(t, "first/1", second.awaitStandby(t))
	first.Close()
	second.awaitElected(t)
	second.Close()
}
