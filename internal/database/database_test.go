package database

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/internal/election"
	"github.com/kuberewind/kuberewind/internal/embedded"
	"github.com/kuberewind/kuberewind/internal/pgdata"
	"github.com/kuberewind/kuberewind/internal/pgtest/pgcopy"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// keptServer starts an embedded PostgreSQL and runs Keep until the test ends. Keep checks the files every lookAt. The channel holds the
// last value that Keep reported.
func keptServer(ctx context.Context, t *testing.T, binaries string, lookAt time.Duration) (d *Database, outdated <-chan bool) {
	t.Helper()
	return keptServerIn(ctx, t, filepath.Join(t.TempDir(), "postgres"), binaries, lookAt)
}

func keptServerIn(ctx context.Context, t *testing.T, dir, binaries string, lookAt time.Duration) (d *Database, outdated <-chan bool) {
	t.Helper()
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	require.NoError(t, os.Chmod(filepath.Dir(filepath.Dir(dir)), 0o711)) // as root, the server runs under another account
	require.NoError(t, pgdata.Fill(dir))
	server, err := embedded.Start(ctx, embedded.Options{DataDir: dir, BinDir: binaries, Throwaway: true, Logger: log})
	require.NoError(t, err)
	d = &Database{log: log, embedded: server, missed: make(chan struct{}, 1), lookAt: lookAt}
	reported := make(chan bool, 1)
	kept, stopKeeping := context.WithCancel(ctx)
	var keeper sync.WaitGroup
	keeper.Go(func() {
		d.Keep(kept, func(is bool) {
			select {
			case <-reported:
			default:
			}
			reported <- is
		})
	})
	t.Cleanup(func() {
		stopKeeping()
		keeper.Wait()
		require.NoError(t, d.Close())
	})
	return d, reported
}

func TestKeepStartsADeadServerAgainAfterMissed(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	d, _ := keptServer(ctx, t, "", time.Hour)
	died := d.embedded.PID()
	require.NoError(t, syscall.Kill(died, syscall.SIGKILL))
	d.Missed()
	d.Missed()
	require.Eventually(t, func() bool { return d.embedded.PID() != died }, 5*time.Minute, 10*time.Millisecond)
	conn, err := d.Connect(ctx)
	require.NoError(t, err)
	require.NotNil(t, conn.Config().AfterNetConnect, "the client must notice a server that falls silent")
	require.NoError(t, conn.Close(ctx))
}

func TestKeepRestartsAServerWithReplacedFilesAfterOtherSessionsEnd(t *testing.T) {
	t.Setenv("PGAPPNAME", "ours")
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	source, _ := keptServer(ctx, t, "", time.Hour)
	files := pgcopy.Of(t, source.URL(), filepath.Join(t.TempDir(), "copy"))
	d, outdated := keptServer(ctx, t, files.Bin, 10*time.Millisecond)
	require.False(t, <-outdated)
	before := d.embedded.PID()
	writer, err := postgres.NewPool(ctx, d.URL(), postgres.SessionName)
	require.NoError(t, err)
	t.Cleanup(writer.Close)
	require.NoError(t, writer.Ping(ctx))
	elector, err := postgres.NewPool(ctx, d.URL(), election.SessionName)
	require.NoError(t, err)
	t.Cleanup(elector.Close)
	require.NoError(t, elector.Ping(ctx))
	other, err := d.Connect(ctx)
	require.NoError(t, err)

	files.Upgrade(t)
	for range 10 {
		require.Eventually(t, func() bool { return <-outdated }, 5*time.Minute, time.Millisecond)
	}
	require.Equal(t, before, d.embedded.PID(), "another session is open")
	names, err := d.Outdated()
	require.NoError(t, err)
	require.Contains(t, names, files.Library)

	require.NoError(t, other.Close(ctx))
	require.Eventually(t, func() bool { return !<-outdated }, 5*time.Minute, time.Millisecond)
	require.NotEqual(t, before, d.embedded.PID())
	names, err = d.Outdated()
	require.NoError(t, err)
	require.Empty(t, names)
	require.Eventually(t, func() bool { return writer.Ping(ctx) == nil }, 5*time.Minute, time.Millisecond, "the writer's next try passes")
}

func TestKeepStartsTheServerAgainAfterAFailedRestart(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	source, _ := keptServer(ctx, t, "", time.Hour)
	files := pgcopy.Of(t, source.URL(), filepath.Join(t.TempDir(), "copy"))
	dir := filepath.Join(t.TempDir(), "postgres")
	d, outdated := keptServerIn(ctx, t, dir, files.Bin, 10*time.Millisecond)
	require.False(t, <-outdated)
	before := d.embedded.PID()

	// Without its password, the server can be stopped but not started.
	password := filepath.Join(dir, "pgpass")
	require.NoError(t, os.Rename(password, password+".away"))
	files.Upgrade(t)
	require.NoError(t, d.embedded.Gone(ctx))
	for range 10 {
		require.True(t, <-outdated, "the restart is not done")
	}
	require.NoError(t, os.Rename(password+".away", password))
	require.Eventually(t, func() bool { return !<-outdated }, 5*time.Minute, time.Millisecond)
	require.NotEqual(t, before, d.embedded.PID())
	conn, err := d.Connect(ctx)
	require.NoError(t, err)
	require.NoError(t, conn.Close(ctx))
}

func TestKeepStartsNoServerIfTheDatabaseIsElsewhere(t *testing.T) {
	d := &Database{url: "postgres://elsewhere"}
	d.Missed()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	d.Keep(ctx, nil)
}
