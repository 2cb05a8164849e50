package recorder

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/deltafifo"
	"github.com/kuberewind/kuberewind/deltafifo/spool"
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
