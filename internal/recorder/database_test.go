package recorder

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

	"github.com/kuberewind/kuberewind/internal/embedded"
)

func TestAnEmbeddedDatabaseThatDiedIsStartedAgainWhenItIsMissed(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	log := slog.New(slog.DiscardHandler)
	dir := t.TempDir()
	require.NoError(t, os.Chmod(filepath.Dir(dir), 0o711)) // as root, the server runs under another account
	server, err := embedded.Start(ctx, embedded.Options{DataDir: filepath.Join(dir, "postgres"), Throwaway: true, Logger: log})
	require.NoError(t, err)
	d := &Database{log: log, embedded: server, missed: make(chan struct{}, 1)}
	defer func() { require.NoError(t, d.Close()) }()
	kept, leave := context.WithCancel(ctx)
	var keeper sync.WaitGroup
	keeper.Go(func() { d.Keep(kept) })
	defer keeper.Wait()
	defer leave()

	died := server.PID()
	require.NoError(t, syscall.Kill(died, syscall.SIGKILL))
	d.Missed()
	d.Missed()
	require.Eventually(t, func() bool { return server.PID() != died }, time.Minute, 10*time.Millisecond)
	conn, err := d.Connect(ctx)
	require.NoError(t, err)
	require.NotNil(t, conn.Config().AfterNetConnect, "its statements are not waited for when the server has fallen silent")
	require.NoError(t, conn.Close(ctx))
}

func TestADatabaseElsewhereIsNotStarted(t *testing.T) {
	d := &Database{url: "postgres://elsewhere"}
	d.Missed()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	d.Keep(ctx)
}
