package spooling

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/deltafifo/spool"
)

func TestTakeWaitsForReadersOfTheSpool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := slog.New(slog.DiscardHandler)
		o := spool.Options{Dir: t.TempDir(), MaxBytes: 1 << 20}
		made, err := OpenExclusive(t.Context(), o, log)
		require.NoError(t, err)
		require.NoError(t, made.Close())
		reader, err := spool.Open(spool.Options{Dir: o.Dir, ReadOnly: true, Shared: true})
		require.NoError(t, err)
		began := time.Now()
		_, err = OpenExclusive(t.Context(), o, log)
		require.ErrorIs(t, err, spool.ErrRead)
		require.Equal(t, readersTimeout, time.Since(began), "not for ever: a reader may be stopped")

		time.AfterFunc(readersTimeout/2, func() { require.NoError(t, reader.Close()) })
		taken, err := OpenExclusive(t.Context(), o, log)
		require.NoError(t, err)
		began = time.Now()
		_, err = OpenExclusive(t.Context(), o, log)
		require.ErrorIs(t, err, spool.ErrLocked)
		require.Zero(t, time.Since(began), "OpenExclusive does not wait for a recorder")
		require.NoError(t, taken.Close())
	})
}
