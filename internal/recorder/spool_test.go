package recorder

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/deltafifo"
	"github.com/kuberewind/kuberewind/deltafifo/spool"
	"github.com/kuberewind/kuberewind/internal/config"
	"github.com/kuberewind/kuberewind/internal/pgtest"
	"github.com/kuberewind/kuberewind/internal/telemetry"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// A database is away, and the cluster is quiet: what waits in memory would be lost with the process.
func TestWhatWaitsForLongIsSpooledThoughNothingElseComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk, err := spool.Open(spool.Options{Dir: t.TempDir(), MaxBytes: 1 << 20})
		require.NoError(t, err)
		defer func() { require.NoError(t, disk.Close()) }()
		s, codec := spooledWidgets(t)
		r := &Recorder{queue: deltafifo.New(deltafifo.Options{Spool: disk, Codec: codec})}
		ctx, stop := context.WithCancel(t.Context())
		go r.spillOverdue(ctx)
		fifo := r.queue.FIFO(deltafifo.FIFOOptions{Stream: s})
		require.NoError(t, fifo.Add(widget(t, "7")))
		for i := range 3 {
			require.Zero(t, r.queue.Stats().Spooled)
			require.NoError(t, fifo.Bookmark([]string{"8", "9"}[i%2]))
			time.Sleep(10 * time.Second)
		}
		time.Sleep(2 * time.Second)
		require.Equal(t, 2, r.queue.Stats().Spooled)
		stop()
		synctest.Wait()
	})
}

// What is left of it follows what nobody knows any more.
func TestASpoolWhoseBeginningIsMissingIsSetAside(t *testing.T) {
	db := pgtest.Shared(t).New(t, emptyRecord)
	sink, err := postgres.Open(t.Context(), postgres.Config{URL: db.URL(), ClusterUID: "uid", ClusterName: "prod"})
	require.NoError(t, err)
	defer sink.Close()
	owner := spoolOwner{Cluster: "uid", Epoch: 1}
	header, err := json.Marshal(owner)
	require.NoError(t, err)
	o := spool.Options{Dir: t.TempDir(), MaxBytes: 1 << 20, SegmentBytes: 100, Header: header}
	disk, err := spool.Open(o)
	require.NoError(t, err)
	require.NoError(t, disk.SetCursor(0, sink.Info().Head, 0, nil))
	for range 9 {
		require.NoError(t, disk.Append([]byte("a record that fills a segment together with a few others")))
	}
	require.NoError(t, disk.Close())
	segments, err := filepath.Glob(filepath.Join(o.Dir, "*.seg"))
	require.NoError(t, err)
	require.Greater(t, len(segments), 2)
	require.NoError(t, os.Remove(segments[0]))

	r := newRecorder(config.Config{}, slog.New(slog.DiscardHandler))
	r.metrics, r.sink = &metrics{telemetry.NewMetrics()}, sink
	r.spool, err = spool.Open(o)
	require.NoError(t, err)
	defer func() { require.NoError(t, r.spool.Close()) }()
	require.NoError(t, r.resumeSpool(t.Context(), &deltafifo.Options{}, owner))
	require.True(t, r.spoolCorrupt)
	require.NotEmpty(t, r.spool.Aside())
	require.Equal(t, r.spool.First(), r.spool.Next())
}
