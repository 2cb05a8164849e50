package spooling_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/deltafifo/spool"
	"github.com/kuberewind/kuberewind/internal/spooling"
	"github.com/kuberewind/kuberewind/internal/streamtest"
)

// HasLeftovers changes nothing, and returns the answer that the next recorder would find.
func TestHasLeftoversReportsWhetherARecorderWouldWriteTheSpool(t *testing.T) {
	s := newStranded(t, time.Second)
	leftovers := func() (bool, error) { return spooling.HasLeftovers(t.Context(), s.Conn, s.folder.Dir, "uid", nil) }
	_, err := leftovers()
	require.ErrorIs(t, err, spooling.ErrWaits)
	require.ErrorIs(t, err, spool.ErrLocked)
	require.NoError(t, s.Folder.Close())
	other, err := spool.Open(spool.Options{Dir: s.folder.Dir, ReadOnly: true, Shared: true})
	require.NoError(t, err)
	_, err = leftovers()
	require.ErrorContains(t, err, "a recorder that is started here writes them", "also while another process reads")
	require.NoError(t, other.Close())
	s.Sink.Close()
	s.Open()
	s.SpillTo(s.folder)
	s.commit(3)
	require.NoError(t, s.Folder.Close())
	_, err = leftovers()
	require.ErrorIs(t, err, spooling.ErrWaits)
	no, err := spooling.HasLeftovers(t.Context(), s.Conn, s.folder.Dir, "uid", []byte("another key"))
	require.NoError(t, err)
	require.True(t, no)

	s.Sink.Close()
	s.Open()
	s.At = s.At.Add(time.Second)
	_, pods := s.Follow("pods", "Pod")
	require.NoError(t, pods.Update(streamtest.Served(t, "Pod", "first", 15)))
	s.Pump()
	no, err = leftovers()
	require.NoError(t, err)
	require.True(t, no, "another recorder has written since")
	segments, err := filepath.Glob(filepath.Join(s.folder.Dir, "*.seg"))
	require.NoError(t, err)
	require.NotEmpty(t, segments)
	for _, segment := range segments {
		require.NoError(t, os.Remove(segment))
	}
	no, err = leftovers()
	require.NoError(t, err)
	require.False(t, no)
}
