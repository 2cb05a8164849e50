package spool

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t require.TestingT, o Options) *Spool {
	if o.MaxBytes == 0 {
		o.MaxBytes = 1 << 30
	}
	s, err := Open(o)
	require.NoError(t, err)
	return s
}

// rest reads all records that were not read yet.
func rest(t require.TestingT, s *Spool) []string {
	var all []string
	for {
		record, ok, err := s.Read()
		require.NoError(t, err)
		if !ok {
			return all
		}
		all = append(all, string(record))
	}
}

func fill(t require.TestingT, s *Spool, from, to int) (all []string) {
	for i := from; i < to; i++ {
		all = append(all, fmt.Sprintf("record %d %s", i, strings.Repeat("x", i%37)))
		require.NoError(t, s.Append(s.Next(), []byte(all[len(all)-1])))
	}
	return all
}

func TestRecordsComeBackInOrderAndUseNoDiskOnceReleased(t *testing.T) {
	s := open(t, Options{Dir: t.TempDir(), SegmentBytes: 200})
	defer func() { require.NoError(t, s.Close()) }()
	require.NoError(t, s.Renew([]byte("mine")))
	all := fill(t, s, 0, 50)
	require.Equal(t, all, rest(t, s))
	require.Equal(t, []byte("mine"), s.Header())
	require.NoError(t, s.Release(20))
	require.Equal(t, uint64(20), s.First())
	more := fill(t, s, 50, 60)
	require.Equal(t, more, rest(t, s))
	s.SeekTo(20)
	require.Equal(t, append(slices.Clone(all[20:]), more...), rest(t, s))
	require.NoError(t, s.Release(60))
	require.Zero(t, s.Bytes())
	files, err := filepath.Glob(filepath.Join(s.o.Dir, "*"+suffix))
	require.NoError(t, err)
	require.Empty(t, files)
	require.Equal(t, fill(t, s, 60, 61), rest(t, s))
}

func TestAcceptedRecordsSurviveTheProcess(t *testing.T) {
	dir := t.TempDir()
	s := open(t, Options{Dir: dir, SegmentBytes: 300})
	all := fill(t, s, 0, 40)
	died(t, s)
	s = open(t, Options{Dir: dir, SegmentBytes: 300})
	require.Equal(t, all, rest(t, s))
	require.Empty(t, s.Aside())
	require.Equal(t, fill(t, s, 40, 45), rest(t, s), "it goes on after them")
	require.NoError(t, s.Close())
}

// died releases the folder as the end of a process does: it flushes nothing.
func died(t require.TestingT, s *Spool) {
	s.cursor.close()
	if s.files.file != nil {
		require.NoError(t, s.files.file.Close())
	}
	require.NoError(t, s.lock.Close())
}

// If a prefix of the bytes is on disk, Read returns a prefix of the appended records, and appending goes on.
func TestAnyPrefixOfTheBytesIsAPrefixOfTheRecords(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "spool")
		require.NoError(rt, err)
		o := Options{Dir: dir, SegmentBytes: rapid.Int64Range(60, 400).Draw(rt, "segment")}
		s := open(rt, o)
		all := fill(rt, s, 0, rapid.IntRange(1, 60).Draw(rt, "records"))
		segments := slices.Clone(s.files.segments)
		died(rt, s)

		// The crash comes after so many bytes: later segments were never begun.
		left := rapid.Int64Range(0, total(segments)).Draw(rt, "written")
		for _, segment := range segments {
			keep := min(left, segment.size)
			left -= keep
			if keep == 0 {
				require.NoError(rt, os.Remove(segment.path))
				continue
			}
			require.NoError(rt, os.Truncate(segment.path, keep))
		}
		s = open(rt, o)
		got := rest(rt, s)
		require.LessOrEqual(rt, len(got), len(all))
		require.Equal(rt, all[:len(got)], append([]string{}, got...))
		require.Empty(rt, s.Aside(), "a torn end is no damage")
		require.Equal(rt, fill(rt, s, 100, 110), rest(rt, s))
		require.NoError(rt, s.Close())
	})
}

func total(segments []*segment) (n int64) {
	for _, s := range segments {
		n += s.size
	}
	return n
}

// If any byte is damaged, Read returns a prefix, and the data after the damage is kept aside.
func TestADamagedByteEndsTheRecordsAndTheRestIsKept(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "spool")
		require.NoError(rt, err)
		o := Options{Dir: dir, SegmentBytes: 200}
		s := open(rt, o)
		all := fill(rt, s, 0, 30)
		segments := slices.Clone(s.files.segments)
		died(rt, s)
		which := segments[rapid.IntRange(0, len(segments)-2).Draw(rt, "segment")]
		data, err := os.ReadFile(which.path)
		require.NoError(rt, err)
		data[rapid.IntRange(0, len(data)-1).Draw(rt, "byte")] ^= 1 << rapid.IntRange(0, 7).Draw(rt, "bit")
		require.NoError(rt, os.WriteFile(which.path, data, 0o600))

		s = open(rt, o)
		got := rest(rt, s)
		require.Less(rt, len(got), len(all))
		require.Equal(rt, all[:len(got)], append([]string{}, got...))
		require.GreaterOrEqual(rt, len(got), int(which.first))
		kept, err := os.ReadFile(filepath.Join(s.Aside(), filepath.Base(which.path)))
		require.NoError(rt, err)
		require.Equal(rt, data, kept)
		require.NoError(rt, s.Close())
	})
}

// After a power cut, any page of the part that was being written may be on disk. The others are zeros.
func TestATornLastRecordIsCutAndDoesNotCountAsDamage(t *testing.T) {
	zeros := func(n int) []byte { return make([]byte, n) }
	last := func(whole []byte, size int) []byte { return whole[len(whole)-size:] }
	for name, cut := range map[string]func(whole []byte, size int) []byte{
		"zeros in its text":      func(whole []byte, size int) []byte { clear(last(whole, size)[recordHead+3:]); return whole },
		"zeros in its beginning": func(whole []byte, size int) []byte { clear(last(whole, size)[:recordHead+3]); return whole },
		"its length only":        func(whole []byte, size int) []byte { clear(last(whole, size)[4:]); return whole },
		"zeros in it, and beyond it": func(whole []byte, size int) []byte {
			clear(last(whole, size)[20:])
			return append(whole, zeros(8<<10)...)
		},
		"a page of another file beyond it":  func(whole []byte, size int) []byte { return append(whole[:len(whole)-3], noise(t, 8<<10)...) },
		"nothing but zeros of the segment":  func(whole []byte, _ int) []byte { return zeros(len(whole)) },
		"the segment's header, and no more": func([]byte, int) []byte { return zeros(headerSize(nil)) },
	} {
		t.Run(name, func(t *testing.T) {
			o := Options{Dir: t.TempDir()}
			s := open(t, o)
			all := fill(t, s, 0, 3)
			path, before := s.files.last().path, s.files.last().size
			all = append(all, fill(t, s, 36, 37)...)
			size := int(s.files.last().size - before)
			died(t, s)
			whole, err := os.ReadFile(path)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(path, cut(whole, size), 0o600))
			s = open(t, o)
			defer func() { require.NoError(t, s.Close()) }()
			require.Empty(t, s.Aside())
			got := rest(t, s)
			require.Less(t, len(got), len(all))
			require.Equal(t, all[:len(got)], append([]string{}, got...))
			require.Equal(t, fill(t, s, 5, 7), rest(t, s))
		})
	}
}

// The damaged length of a record reaches beyond the end of the file, but the record is not the last one.
func TestDamageBeforeARecordIsNotATornEnd(t *testing.T) {
	o := Options{Dir: t.TempDir()}
	s := open(t, o)
	all := fill(t, s, 0, 3)
	at := s.files.last().size
	fill(t, s, 3, 9)
	path := s.files.last().path
	died(t, s)
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	data[at+2] ^= 1
	require.NoError(t, os.WriteFile(path, data, 0o600))
	s = open(t, o)
	defer func() { require.NoError(t, s.Close()) }()
	require.Equal(t, all, rest(t, s))
	kept, err := os.ReadFile(filepath.Join(s.Aside(), filepath.Base(path)))
	require.NoError(t, err)
	require.Equal(t, data, kept)
}

func TestAMissingSegmentEndsTheRecords(t *testing.T) {
	dir := t.TempDir()
	s := open(t, Options{Dir: dir, SegmentBytes: 200})
	all := fill(t, s, 0, 40)
	gone := s.files.segments[2]
	after := s.files.segments[3]
	died(t, s)
	require.NoError(t, os.Remove(gone.path))
	s = open(t, Options{Dir: dir, SegmentBytes: 200})
	require.Equal(t, all[:gone.first], rest(t, s))
	require.FileExists(t, filepath.Join(s.Aside(), filepath.Base(after.path)))
	require.NoError(t, s.Close())
}

func TestTheBoundHoldsAndRoomComesBack(t *testing.T) {
	s := open(t, Options{Dir: t.TempDir(), SegmentBytes: 100, MaxBytes: 300})
	defer func() { require.NoError(t, s.Close()) }()
	n := 0
	var err error
	for ; err == nil; n++ {
		err = s.Append(s.Next(), []byte(fmt.Sprint("a record with a number: ", n)))
		require.LessOrEqual(t, s.Bytes(), int64(300))
	}
	require.ErrorIs(t, err, ErrFull)
	require.Len(t, rest(t, s), n-1)
	require.NoError(t, s.Release(s.files.segments[0].end))
	require.NoError(t, s.Append(s.Next(), []byte("again")))
	require.Equal(t, []string{"again"}, rest(t, s))
}

// A small spool is still several segments.
func TestASmallSpoolFreesRoomWhileItIsReadNotOnlyWhenItIsEmpty(t *testing.T) {
	s := open(t, Options{Dir: t.TempDir(), MaxBytes: 1 << 20})
	defer func() { require.NoError(t, s.Close()) }()
	var err error
	for err == nil {
		err = s.Append(s.Next(), []byte(noise(t, 10<<10)))
	}
	require.ErrorIs(t, err, ErrFull)
	require.NoError(t, s.Release(s.Next()/4))
	require.NoError(t, s.Append(s.Next(), []byte(noise(t, 10<<10))))
}

func TestAFailedAppendAddsNothing(t *testing.T) {
	dir := t.TempDir()
	s := open(t, Options{Dir: dir})
	all := fill(t, s, 0, 5)
	writable := s.files.file
	var err error
	s.files.file, err = os.Open(s.files.last().path) // as on a disk that has become read-only
	require.NoError(t, err)
	require.Error(t, s.Append(s.Next(), []byte("lost")))
	require.NoError(t, s.files.file.Close())
	s.files.file = writable
	all = append(all, fill(t, s, 5, 8)...)
	require.Equal(t, all, rest(t, s))
	require.NoError(t, s.Close())
}

func TestOneProcessHasTheFolderAtATime(t *testing.T) {
	dir := t.TempDir()
	s := open(t, Options{Dir: dir})
	_, err := Open(Options{Dir: dir, MaxBytes: 1})
	require.ErrorIs(t, err, ErrLocked)
	require.NoError(t, s.Close())
	require.NoError(t, open(t, Options{Dir: dir}).Close())
}

func TestReadersShareTheFolderAndExcludeAWriter(t *testing.T) {
	o := Options{Dir: t.TempDir(), MaxBytes: 1 << 20}
	writer, err := Open(o)
	require.NoError(t, err)
	require.NoError(t, writer.Append(writer.Next(), []byte("a")))
	reading := Options{Dir: o.Dir, ReadOnly: true, Shared: true}
	_, err = Open(reading)
	require.ErrorIs(t, err, ErrLocked)
	require.NoError(t, writer.Close())

	one, err := Open(reading)
	require.NoError(t, err)
	other, err := Open(reading)
	require.NoError(t, err)
	require.Equal(t, []string{"a"}, rest(t, other))
	require.NoError(t, one.Close())
	for range 2 {
		_, err = Open(o)
		require.ErrorIs(t, err, ErrRead)
		require.NotErrorIs(t, err, ErrLocked)
	}
	require.NoError(t, other.Close())
	writer, err = Open(o)
	require.NoError(t, err)
	require.NoError(t, writer.Close())
}

// The owner numbers its entries, whether they are spooled or not.
func TestOnlyAnEmptySpoolGoesOnAtALaterIndex(t *testing.T) {
	o := Options{Dir: t.TempDir(), SegmentBytes: 200}
	s := open(t, o)
	require.NoError(t, s.Renew([]byte("mine")))
	require.NoError(t, s.Append(7, []byte("a")))
	require.Equal(t, uint64(7), s.First())
	require.ErrorContains(t, s.Append(7, []byte("again")), "append record 7, but record 8 is next")
	require.ErrorContains(t, s.Append(9, []byte("b")), "append record 9, but record 8 is next")
	all := append([]string{"a"}, fill(t, s, 8, 30)...)
	require.NoError(t, s.Release(20))
	require.Equal(t, uint64(7), s.Begun())
	died(t, s)

	s = open(t, o)
	require.Equal(t, uint64(7), s.Begun(), "though its first records are released")
	require.NoError(t, s.Release(25))
	require.Equal(t, all[18:], rest(t, s))
	require.Error(t, s.Renew([]byte("another's")), "it holds records under the first header")
	require.NoError(t, s.Release(40), "a power cut may have taken released records")
	require.Equal(t, uint64(40), s.Next())
	require.NoError(t, s.Renew([]byte("another's")))
	require.NoError(t, s.Append(45, []byte("c")))
	require.NoError(t, s.Close())

	s = open(t, o)
	defer func() { require.NoError(t, s.Close()) }()
	require.Equal(t, []byte("another's"), s.Header(), "the header of what is there goes on")
	require.Equal(t, uint64(45), s.Begun())
	require.Equal(t, []string{"c"}, rest(t, s))
}

// An operator may have moved segments back that were set aside.
func TestASegmentOfAnotherSpoolEndsTheRecords(t *testing.T) {
	dir := t.TempDir()
	o := Options{Dir: dir, SegmentBytes: 200}
	s := open(t, o)
	require.NoError(t, s.Renew([]byte("mine")))
	all := fill(t, s, 0, 10)
	require.NoError(t, s.Close())
	other := open(t, Options{Dir: t.TempDir()})
	require.NoError(t, other.Renew([]byte("another's")))
	require.NoError(t, other.Append(10, []byte("not mine")))
	name := filepath.Base(other.files.last().path)
	require.NoError(t, os.Rename(other.files.last().path, filepath.Join(dir, name)))
	require.NoError(t, other.Close())
	s = open(t, o)
	defer func() { require.NoError(t, s.Close()) }()
	require.Equal(t, all, rest(t, s))
	require.FileExists(t, filepath.Join(s.Aside(), name))
}

// The next start would set the records after it aside.
func TestNothingIsAppendedAfterASegmentThatCannotBeDeleted(t *testing.T) {
	s := open(t, Options{Dir: t.TempDir()})
	defer func() { require.NoError(t, s.Close()) }()
	fill(t, s, 0, 3)
	stuck := s.files.last().path
	require.NoError(t, os.Rename(stuck, stuck+".kept"))
	require.NoError(t, os.MkdirAll(filepath.Join(stuck, "a folder is not removed"), 0o700))
	require.Error(t, s.Release(3))
	require.Equal(t, uint64(3), s.First())
	require.Error(t, s.Append(5, []byte("lost")))
	require.NoError(t, os.RemoveAll(stuck))
	require.NoError(t, s.Append(5, []byte("a")))
	require.Equal(t, []string{"a"}, rest(t, s))
	require.NoError(t, os.Remove(stuck+".kept"))
}

func TestSetAsideKeepsTheRecordsAndTheSpoolGoesOnEmpty(t *testing.T) {
	s := open(t, Options{Dir: t.TempDir(), SegmentBytes: 200})
	defer func() { require.NoError(t, s.Close()) }()
	fill(t, s, 0, 20)
	segments := slices.Clone(s.files.segments)
	folder, err := s.SetAside()
	require.NoError(t, err)
	for _, segment := range segments {
		require.FileExists(t, filepath.Join(folder, filepath.Base(segment.path)))
	}
	require.Zero(t, s.Bytes())
	require.Equal(t, fill(t, s, 20, 25), rest(t, s))
}

func TestTheStateOfAFolderIsReported(t *testing.T) {
	dir := t.TempDir()
	c, err := Inspect(filepath.Join(dir, "none"))
	require.NoError(t, err)
	require.Zero(t, c)
	s := open(t, Options{Dir: dir})
	defer func() { require.NoError(t, s.Close()) }()
	fill(t, s, 0, 1)
	c, err = Inspect(dir)
	require.NoError(t, err)
	require.Equal(t, Contents{Bytes: s.Bytes()}, c)
	folder, err := s.SetAside()
	require.NoError(t, err)
	c, err = Inspect(dir)
	require.NoError(t, err)
	require.Equal(t, Contents{Aside: []string{folder}}, c)
}

// For any content of a file, the reader ends without a panic and returns only records with a correct checksum.
func FuzzSegment(f *testing.F) {
	dir := f.TempDir()
	s := open(f, Options{Dir: dir})
	require.NoError(f, s.Renew([]byte("owner")))
	fill(f, s, 0, 5)
	whole, err := os.ReadFile(s.files.last().path)
	require.NoError(f, err)
	require.NoError(f, s.Close())
	f.Add(whole)
	f.Add(whole[:len(whole)-3])
	f.Add(append(bytes.Clone(whole), 0, 0, 0, 0, 0, 0, 0, 0))
	f.Fuzz(func(t *testing.T, data []byte) {
		path := segmentPath(t.TempDir(), 0)
		require.NoError(t, os.WriteFile(path, data, 0o600))
		found := &segment{path: path}
		if err := found.scan(); err == nil {
			require.Equal(t, int64(len(data)), found.size)
		}
		require.LessOrEqual(t, found.size, int64(len(data)))
		if found.end == 0 {
			return
		}
		r, err := found.open()
		require.NoError(t, err)
		defer r.close()
		for range found.end {
			packed, err := r.next()
			require.NoError(t, err)
			require.NotEmpty(t, packed)
		}
		_, err = r.next()
		require.True(t, err != nil || found.size < int64(len(data)))
		require.NotErrorIs(t, err, io.ErrShortBuffer)
	})
}
