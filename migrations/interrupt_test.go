package migrations_test

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"os/exec"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/kuberewind/kuberewind/migrations"
)

// waiting selects whether a session of this database waits for the lock of a table.
const waiting = `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND wait_event = 'relation')`

// halfway returns a database with the tables and without the views. A lock blocks the next migration halfway until it
// is released.
func halfway(t *testing.T) (url string, holder pgx.Tx) {
	t.Helper()
	url = newDatabase(t)
	require.NoError(t, migrations.To(t.Context(), url, migrations.First+1))
	holder, err := connect(t, url).Begin(t.Context())
	require.NoError(t, err)
	run(t, holder, "LOCK TABLE kuberewind.pauses_data IN ACCESS EXCLUSIVE MODE")
	return url, holder
}

func start(ctx context.Context, url string) *errgroup.Group {
	var group errgroup.Group
	group.Go(func() error { return migrations.Up(ctx, url, discard()) })
	return &group
}

func TestAMigrationRunsAgainIfItsConnectionIsLost(t *testing.T) {
	url, holder := halfway(t)
	watcher := connect(t, url)
	up := start(t.Context(), url)
	eventually(t, watcher, waiting)
	run(t, watcher, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'")
	require.Error(t, up.Wait())
	require.True(t, one[bool](t, watcher, "SELECT dirty FROM kuberewind.schema_migrations"), "the test needs the note of an interruption")
	require.ErrorIs(t, migrations.Check(t.Context(), watcher), migrations.ErrOlder)

	require.NoError(t, holder.Rollback(t.Context()))
	var log bytes.Buffer
	require.NoError(t, migrations.Up(t.Context(), url, slog.New(slog.NewTextHandler(&log, nil))))
	require.Contains(t, log.String(), "a migration was interrupted")
	require.NoError(t, migrations.Check(t.Context(), watcher))
}

// The server continues a migration whose process is gone, and commits it. So a "dirty" note does not mean that the
// migration was not applied.
func TestTheMigrationOfAKilledMigratorMayStillCommit(t *testing.T) {
	url, holder := halfway(t)
	watcher := connect(t, url)
	child := migrator(t, url)
	eventually(t, watcher, waiting)
	require.NoError(t, child.Process.Kill())
	require.ErrorContains(t, child.Wait(), "killed")

	require.NoError(t, holder.Rollback(t.Context()))
	require.NoError(t, migrations.Up(t.Context(), url, discard()))
	require.NoError(t, migrations.Check(t.Context(), watcher))
	require.NoError(t, migrations.Down(t.Context(), url, false))
}

func TestAMigratorWaitsForTheLockOfAKilledMigrator(t *testing.T) {
	url, holder := halfway(t)
	watcher := connect(t, url)
	child := migrator(t, url)
	eventually(t, watcher, waiting)
	require.NoError(t, child.Process.Kill())
	require.Error(t, child.Wait())
	up := start(t.Context(), url)
	eventually(t, watcher, `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'advisory')`)

	require.NoError(t, holder.Rollback(t.Context()))
	require.NoError(t, up.Wait())
	require.NoError(t, migrations.Check(t.Context(), watcher))
}

func migrator(t *testing.T, url string) *exec.Cmd {
	t.Helper()
	child := exec.Command(os.Args[0], "-test.run=^$")
	child.Env = append(os.Environ(), childURL+"="+url)
	require.NoError(t, child.Start())
	return child
}

// The schema counts, and not golang-migrate's note.
func TestAMigratorIgnoresAWrongNote(t *testing.T) {
	for _, note := range []string{"110, true", "111, true", "1, true", "-1, true"} {
		url, conn := migrated(t)
		run(t, conn, "DELETE FROM kuberewind.schema_migrations")
		run(t, conn, "INSERT INTO kuberewind.schema_migrations VALUES ("+note+")")
		require.NoError(t, migrations.Up(t.Context(), url, discard()), note)
		require.NoError(t, migrations.Down(t.Context(), url, false), note)
		require.NoError(t, migrations.Up(t.Context(), url, discard()), note)
		require.NoError(t, migrations.Check(t.Context(), conn), note)
	}
}

func TestAMigrationWaitsForATableInUse(t *testing.T) {
	url, holder := halfway(t)
	up := start(t.Context(), url)
	// The first attempt gives up, which empties the queue behind it, and another attempt follows.
	eventually(t, connect(t, url), waiting)
	eventually(t, connect(t, url), "SELECT NOT ("+waiting[len("SELECT "):]+")")
	eventually(t, connect(t, url), waiting)
	require.NoError(t, holder.Rollback(t.Context()))
	require.NoError(t, up.Wait())
}

func TestACancelledMigrationStopsOnTheServer(t *testing.T) {
	url, holder := halfway(t)
	watcher := connect(t, url)
	ctx, cancel := context.WithCancelCause(t.Context())
	up := start(ctx, url)
	eventually(t, watcher, waiting)
	reason := context.DeadlineExceeded
	cancel(reason)
	require.ErrorIs(t, up.Wait(), reason)
	require.False(t, one[bool](t, watcher, waiting), "no session waits on the server after the return")

	require.NoError(t, holder.Rollback(t.Context()))
	require.ErrorIs(t, migrations.Check(t.Context(), watcher), migrations.ErrOlder)
	require.NoError(t, migrations.Up(t.Context(), url, discard()))
}
