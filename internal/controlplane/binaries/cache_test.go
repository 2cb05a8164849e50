package binaries

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/internal/progress"
)

func TestTheCacheIsTheFirstPlaceThatCanBeWritten(t *testing.T) {
	temporary := t.TempDir()
	last := filepath.Join(temporary, fmt.Sprintf("kuberewind-%d", os.Getuid()))
	// No account, not even root, can make a path below a device.
	const impossible = "/dev/null/home"
	for _, place := range []struct{ explicit, xdg, home, want string }{
		{"", "", "", last},
		{"", "", impossible, last},
		{"", "relative", impossible, last},
		{"", impossible, temporary, last},
		{"", "", temporary, temporary + "/.cache/kuberewind"},
		{"", temporary + "/x", temporary, temporary + "/x/kuberewind"},
		{temporary + "/y", temporary, temporary, temporary + "/y"},
	} {
		t.Setenv("TMPDIR", temporary)
		t.Setenv(cacheVariable, place.explicit)
		t.Setenv("XDG_CACHE_HOME", place.xdg)
		t.Setenv("HOME", place.home)
		var output bytes.Buffer
		told, stop := progress.Watch(&output)
		got, err := writableCache(told)
		stop()
		require.NoError(t, err)
		require.Equal(t, place.want, got, "%+v", place)
		require.Equal(t, place.want == last, strings.Contains(output.String(), "keeping the programs in "+last))
		require.Equal(t, place.home == impossible || place.xdg == impossible, strings.Contains(output.String(), "cannot be used"))
	}
}

func TestACacheThatTheUserNamesIsNotPassedOver(t *testing.T) {
	t.Setenv(cacheVariable, "/dev/null/cache")
	told, stop := progress.Watch(io.Discard)
	defer stop()
	_, err := writableCache(told)
	require.ErrorContains(t, err, cacheVariable)
}

func TestACacheThatOthersCanWriteIsNotTrusted(t *testing.T) {
	newTree(t)
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	t.Setenv(cacheVariable, "")
	t.Setenv("XDG_CACHE_HOME", "")
	t.Setenv("HOME", "")
	dir, err := Build(t.Context(), Options{Progress: io.Discard, Index: NoDownload}, Etcd)
	require.NoError(t, err)
	found, err := Find(Etcd)
	require.NoError(t, err)
	require.Equal(t, dir, found)

	place := filepath.Join(temporary, fmt.Sprintf("kuberewind-%d", os.Getuid()))
	require.NoError(t, os.Chmod(place, 0o777))
	_, err = Find(Etcd)
	require.ErrorIs(t, err, ErrMissing)
	_, err = Build(t.Context(), Options{Progress: io.Discard, Index: NoDownload}, Etcd)
	require.ErrorContains(t, err, "must not be run")

	require.NoError(t, os.Rename(place, place+"-real"))
	require.NoError(t, os.Symlink(place+"-real", place))
	_, err = Find(Etcd)
	require.ErrorIs(t, err, ErrMissing, "a link may lead anywhere")
}
