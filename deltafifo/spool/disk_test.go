package spool

import (
	"crypto/rand"
	"io/fs"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// disk mounts a file system of one mebibyte.
func disk(t *testing.T, options string) string {
	t.Helper()
	dir := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=1m"+options, "tmpfs", dir).CombinedOutput(); err != nil {
		t.Skipf("a small disk takes the right to mount one: %v %s", err, out)
	}
	t.Cleanup(func() {
		out, err := exec.Command("umount", "-l", dir).CombinedOutput()
		require.NoError(t, err, string(out))
	})
	return dir
}

func noise(t *testing.T, bytes int) string {
	t.Helper()
	text := make([]byte, bytes)
	_, err := rand.Read(text)
	require.NoError(t, err)
	return string(text)
}

func TestAFullDiskLosesNoRecordAndTheSpoolContinuesWhenItHasRoom(t *testing.T) {
	o := Options{Dir: disk(t, ""), SegmentBytes: 200 << 10}
	s := open(t, o)
	var want []string
	var err error
	for err == nil {
		record := noise(t, 10<<10)
		if err = s.Append(s.Next(), []byte(record)); err == nil {
			want = append(want, record)
		}
	}
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.Greater(t, len(want), 50)
	require.NoError(t, s.Close())

	s = open(t, o)
	defer func() { require.NoError(t, s.Close()) }()
	require.Empty(t, s.Aside())
	require.Equal(t, want, rest(t, s))
	require.ErrorIs(t, s.Append(s.Next(), []byte(noise(t, 100<<10))), syscall.ENOSPC)
	require.NoError(t, s.Release(uint64(len(want)-5)))
	more := noise(t, 100<<10)
	require.NoError(t, s.Append(s.Next(), []byte(more)))
	s.SeekTo(s.First())
	require.Equal(t, append(want[len(want)-5:], more), rest(t, s))
}

func TestAReadOnlyDiskIsReported(t *testing.T) {
	dir := disk(t, ",ro")
	_, err := Open(Options{Dir: dir, MaxBytes: 1 << 20})
	require.ErrorIs(t, err, syscall.EROFS)
	_, err = Open(Options{Dir: dir, MaxBytes: 1 << 20, ReadOnly: true})
	require.ErrorIs(t, err, fs.ErrNotExist, "there is no spool")
}

// Open writes nothing here. Still it reports the disk now, and not first in an outage of the database.
func TestAReadOnlyDiskIsNoticedEvenIfTheSpoolIsEmpty(t *testing.T) {
	o := Options{Dir: disk(t, ""), MaxBytes: 1 << 20}
	require.NoError(t, open(t, o).Close())
	out, err := exec.Command("mount", "-o", "remount,ro", o.Dir).CombinedOutput()
	require.NoError(t, err, string(out))
	_, err = Open(o)
	require.ErrorIs(t, err, syscall.EROFS)
}

func TestASpoolOnAReadOnlyDiskIsReadAtEachOpen(t *testing.T) {
	o := Options{Dir: disk(t, ""), SegmentBytes: 200}
	s := open(t, o)
	all := fill(t, s, 0, 30)
	last := s.files.last()
	require.NoError(t, s.Close())
	require.NoError(t, os.Truncate(last.path, last.size-1), "torn, and it cannot be cut")
	out, err := exec.Command("mount", "-o", "remount,ro", o.Dir).CombinedOutput()
	require.NoError(t, err, string(out))
	o.ReadOnly = true
	for range 2 {
		s = open(t, o)
		require.Equal(t, all[:29], rest(t, s))
		require.NoError(t, s.Release(20))
		require.Equal(t, uint64(20), s.First())
		require.ErrorIs(t, s.Append(s.Next(), []byte("more")), syscall.EROFS)
		require.NoError(t, s.Release(29))
		require.Equal(t, s.Next(), s.First())
		_, err = s.SetAside()
		require.ErrorIs(t, err, syscall.EROFS)
		require.NoError(t, s.Close())
	}
}

func TestASegmentThatCannotBeSyncedHasNoSuccessor(t *testing.T) {
	s := open(t, Options{Dir: t.TempDir(), SegmentBytes: 1})
	require.NoError(t, s.Append(s.Next(), []byte("a")))
	whole := s.files.file
	broken, err := os.Open(whole.Name())
	require.NoError(t, err)
	require.NoError(t, broken.Close()) // a file that cannot be synced
	s.files.file = broken
	require.ErrorIs(t, s.Append(s.Next(), []byte("b")), os.ErrClosed)
	require.Len(t, s.files.segments, 1)
	s.files.file = whole
	require.NoError(t, s.Append(s.Next(), []byte("b")))
	require.Len(t, s.files.segments, 2)
}
