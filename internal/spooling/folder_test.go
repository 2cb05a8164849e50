package spooling

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/deltafifo"
	"github.com/kuberewind/kuberewind/deltafifo/spool"
	"github.com/kuberewind/kuberewind/internal/telemetry"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

func folder(o spool.Options) *Folder {
	return &Folder{Options: o, Log: slog.New(slog.DiscardHandler), Metrics: telemetry.NewMetrics()}
}

// The database is away, and the cluster is quiet. Entries in memory would be lost with the process.
func TestOverdueEntriesAreSpooledEvenIfNoOtherEntryComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk, err := spool.Open(spool.Options{Dir: t.TempDir(), MaxBytes: 1 << 20})
		require.NoError(t, err)
		defer func() { require.NoError(t, disk.Close()) }()
		s, codec := spooledWidgets(t)
		queue := deltafifo.New(deltafifo.Options{Spool: disk, Codec: codec})
		ctx, stop := context.WithCancel(t.Context())
		go SpillOverdue(ctx, queue)
		fifo := queue.FIFO(deltafifo.FIFOOptions{Stream: s})
		require.NoError(t, fifo.Add(widget(t, "7")))
		for i := range 3 {
			require.Zero(t, queue.Stats().Spooled)
			require.NoError(t, fifo.Bookmark([]string{"8", "9"}[i%2]))
			time.Sleep(10 * time.Second)
		}
		time.Sleep(2 * time.Second)
		require.Equal(t, 2, queue.Stats().Spooled)
		stop()
		synctest.Wait()
	})
}

// Its remaining entries follow entries that no longer exist.
func TestASpoolWhoseBeginningIsMissingIsSetAside(t *testing.T) {
	owner := NewOwner("uid", nil, []byte("head"))
	header, err := json.Marshal(owner)
	require.NoError(t, err)
	o := spool.Options{Dir: t.TempDir(), MaxBytes: 1 << 20, SegmentBytes: 100}
	disk, err := spool.Open(o)
	require.NoError(t, err)
	require.NoError(t, disk.Renew(header))
	for i := range uint64(9) {
		require.NoError(t, disk.Append(i, []byte("a record that fills a segment together with a few others")))
	}
	require.NoError(t, disk.Close())
	segments, err := filepath.Glob(filepath.Join(o.Dir, "*.seg"))
	require.NoError(t, err)
	require.Greater(t, len(segments), 2)
	require.NoError(t, os.Remove(segments[0]))

	f := folder(o)
	require.NoError(t, f.Open(t.Context()))
	defer func() { require.NoError(t, f.Close()) }()
	require.False(t, f.Corrupt())
	left, unreadable, err := f.Resume(owner, postgres.Offset{}, nil)
	require.NoError(t, err)
	require.Empty(t, left)
	require.True(t, unreadable)
	require.True(t, f.Corrupt())
	require.NotEmpty(t, f.Aside())
	require.Equal(t, f.Spool().First(), f.Spool().Next())
}

func TestARecorderThatEndsWhileItWaitsForTheSpoolReportsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := spool.Options{Dir: t.TempDir(), MaxBytes: 1 << 20}
		made, err := spool.Open(o)
		require.NoError(t, err)
		require.NoError(t, made.Close())
		reader, err := spool.Open(spool.Options{Dir: o.Dir, ReadOnly: true, Shared: true})
		require.NoError(t, err)
		defer func() { require.NoError(t, reader.Close()) }()
		ctx, end := context.WithCancelCause(t.Context())
		asked := errors.New("asked to end")
		time.AfterFunc(30*time.Second, func() { end(asked) })
		f := folder(o)
		require.ErrorIs(t, f.Open(ctx), asked)
		require.False(t, f.Corrupt())
		require.Nil(t, f.Spool())
	})
}
