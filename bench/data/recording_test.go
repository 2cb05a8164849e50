package data

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestARecordingGivesWhatWasWritten(t *testing.T) {
	set, err := Generate(Settings{Seed: 3, Live: 200, Events: 1000})
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "set.zst")
	require.NoError(t, Write(path, set, "v1.37.1"))
	source := Source{Path: path}
	again, err := source.Open()
	require.NoError(t, err)
	name, err := source.Name()
	require.NoError(t, err)
	require.Regexp(t, "^recording [0-9a-f]{8}$", name)
	require.Equal(t, set.Resources(), again.Resources())
	live, n := set.Len()
	gotLive, gotN := again.Len()
	require.Equal(t, []int{live, n}, []int{gotLive, gotN})
	require.Equal(t, digest(t, set), digest(t, again))
	require.Equal(t, digest(t, set), digest(t, again), "gone through twice")
}

func TestAFileThatIsNoWholeRecordingIsRefused(t *testing.T) {
	dir := t.TempDir()
	_, err := Open(filepath.Join(dir, "none"))
	require.ErrorIs(t, err, os.ErrNotExist)

	garbage := filepath.Join(dir, "garbage")
	require.NoError(t, os.WriteFile(garbage, []byte("{}"), 0o600))
	_, err = Open(garbage)
	require.ErrorContains(t, err, "is no whole recording")

	set, err := Generate(Settings{Seed: 3, Live: 200, Events: 3000})
	require.NoError(t, err)
	cut := filepath.Join(dir, "cut")
	require.NoError(t, Write(cut, set, "v1.37.1"))
	text, err := os.ReadFile(cut)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(cut, text[:len(text)-100], 0o600))
	set, err = Open(cut)
	require.NoError(t, err)
	for e, broken := range set.Events() {
		if err = broken; err == nil {
			require.NotEmpty(t, e.Object)
		}
	}
	require.ErrorContains(t, err, "is no whole recording")
}
