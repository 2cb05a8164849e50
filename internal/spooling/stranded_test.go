package spooling_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/deltafifo"
	"github.com/kuberewind/kuberewind/deltafifo/spool"
	"github.com/kuberewind/kuberewind/internal/spooling"
	"github.com/kuberewind/kuberewind/internal/streamtest"
	"github.com/kuberewind/kuberewind/kube"
)

// A stranded is a recorder with a spool on a disk that has become read-only. Only the head of the record shows which
// entries it has written.
type stranded struct {
	*streamtest.Recording
	folder spool.Options
	pods   *deltafifo.FIFO
}

// newStranded puts the versions of an object on disk, among them a life that ends and a gap. Each comes a second after
// the last, or all come at one time.
func newStranded(t *testing.T, second time.Duration) *stranded {
	s := &stranded{Recording: streamtest.New(t)}
	s.folder = spool.Options{Dir: t.TempDir(), MaxBytes: 1 << 20}
	s.Spill(s.folder.Dir)
	_, s.pods = s.Follow("pods", "Pod")
	require.NoError(t, s.pods.Add(streamtest.Served(t, "Pod", "first", 11)))
	s.Pump()
	s.At = s.At.Add(30 * time.Second)
	for rv := 12; rv < 17; rv++ {
		s.At = s.At.Add(second)
		require.NoError(t, s.pods.Update(streamtest.Served(t, "Pod", "first", rv)))
	}
	s.At = s.At.Add(second)
	require.NoError(t, s.pods.Add(streamtest.Served(t, "Pod", "short", 17)))
	s.At = s.At.Add(second)
	require.NoError(t, s.pods.Interrupted("forbidden", "why"))
	s.At = s.At.Add(second)
	require.NoError(t, s.pods.Resumed())
	s.At = s.At.Add(second)
	require.NoError(t, s.pods.Delete(streamtest.Served(t, "Pod", "short", 18)))
	s.At = s.At.Add(second)
	again, err := kube.Restore([]byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"first","namespace":"a","resourceVersion":"19","uid":"another life"}}`))
	require.NoError(t, err)
	require.NoError(t, s.pods.Add(again))
	s.At = s.At.Add(second)
	require.NoError(t, s.pods.Interrupted("forbidden", "again"))
	require.Equal(t, 11, s.Queue.Stats().Spooled)
	s.folder.ReadOnly, s.Memory = true, 100_000
	return s
}

// goOn starts a recorder that finds the spool, and returns how many entries are not recorded yet.
func (s *stranded) goOn() int {
	s.T.Helper()
	s.Die()
	s.SpillTo(s.folder)
	return s.Queue.Stats().Spooled
}

// commit writes the oldest entries.
func (s *stranded) commit(most int) {
	s.T.Helper()
	entries, err := s.Queue.Next(s.T.Context(), most, 1<<20, 0)
	require.NoError(s.T, err)
	s.Write(entries)
}

// versions returns all deltas and the gaps.
func (s *stranded) versions() (all []string) {
	s.T.Helper()
	rows, err := s.Conn.Query(s.T.Context(), `
		SELECT trim(concat_ws(' ', name, type, resource_version)) FROM (SELECT * FROM kuberewind.deltas ORDER BY seq) d
		UNION ALL SELECT concat_ws(' ', 'gap', cause, outcome) FROM (SELECT * FROM kuberewind.gaps_data ORDER BY gap) g`)
	require.NoError(s.T, err)
	defer rows.Close()
	for rows.Next() {
		var text string
		require.NoError(s.T, rows.Scan(&text))
		all = append(all, text)
	}
	require.NoError(s.T, rows.Err())
	return all
}

var strandedVersions = []string{
	"first Added 11", "first Updated 12", "first Updated 13", "first Updated 14", "first Updated 15", "first Updated 16",
	"short Added 17", "short Deleted 18", "first Deleted 19", "first Added 19", "gap forbidden resumed", "gap forbidden",
}

// Written entries cannot be removed from a read-only disk: each recorder finds all of them again.
func TestEntriesOnAReadOnlyDiskAreWrittenOnceHoweverOftenTheRecorderDies(t *testing.T) {
	for _, most := range []int{1, 3} {
		t.Run(fmt.Sprint(most, " at once"), func(t *testing.T) {
			s := newStranded(t, time.Second)
			for left := 11; left > 0; left = max(0, left-most) {
				require.Equal(t, left, s.goOn())
				s.commit(most)
			}
			require.Zero(t, s.goOn())
			require.Equal(t, strandedVersions, s.versions())
		})
	}
}

// An object without a row on that day is stored once more before an unobserved delete. The additional row has no entry.
func TestAnUnobservedDeleteOnAReadOnlyDiskIsWrittenOnceOnAnotherDay(t *testing.T) {
	recreated, err := kube.Restore([]byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"first","namespace":"a","resourceVersion":"21","uid":"another life"}}`))
	require.NoError(t, err)
	for name, test := range map[string]struct {
		end     func(*stranded) error
		commits []int
		want    []string
	}{
		"it has vanished": {
			func(s *stranded) error { return s.pods.Replace([]any{}, "21") },
			[]int{1, 2, 1}, // the end of the list has the time of the delete: it is written with the next entry
			[]string{"first Added 11", "first Sync 11", "first Deleted 21", "other Added 22", "other Added 23", "gap relist relisted"},
		},
		"it was created again": {
			func(s *stranded) error { return s.pods.Add(recreated) },
			[]int{1, 1, 1},
			[]string{"first Added 11", "first Sync 11", "first Deleted 21", "first Added 21", "other Added 22", "other Added 23"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := &stranded{Recording: streamtest.New(t)}
			s.folder = spool.Options{Dir: t.TempDir(), MaxBytes: 1 << 20}
			s.Memory = 1
			s.Spill(s.folder.Dir)
			_, s.pods = s.Follow("pods", "Pod")
			require.NoError(t, s.pods.Add(streamtest.Served(t, "Pod", "first", 11)))
			s.Pump()
			s.At = s.At.Add(2 * time.Hour)
			require.NoError(t, test.end(s))
			for rv := 22; rv < 24; rv++ {
				s.At = s.At.Add(time.Second)
				require.NoError(t, s.pods.Add(streamtest.Served(t, "Pod", "other", rv)))
			}
			s.folder.ReadOnly, s.Memory = true, 100_000
			left := s.Queue.Stats().Spooled
			for _, most := range test.commits {
				require.Equal(t, left, s.goOn())
				s.commit(most)
				left -= most
			}
			require.Zero(t, left)
			require.Zero(t, s.goOn())
			require.Equal(t, test.want, s.versions())
		})
	}
}

// Only their numbers distinguish entries of one time.
func TestEntriesOnAReadOnlyDiskAreWrittenOnceIfTheClockStandsStill(t *testing.T) {
	s := newStranded(t, 0)
	require.Equal(t, 11, s.goOn())
	s.commit(8)
	require.Equal(t, 3, s.goOn())
	s.commit(2)
	require.Equal(t, 1, s.goOn())
	s.commit(1)
	require.Zero(t, s.goOn())
	require.Equal(t, strandedVersions, s.versions())
}

// Nothing is appended after rows that another recorder has written meanwhile.
func TestEntriesOnAReadOnlyDiskAreNotUsedAfterAnotherRecorder(t *testing.T) {
	for name, other := range map[string]func(s *stranded){
		"at once": func(*stranded) {},
		"after a part of it was written": func(s *stranded) {
			s.SpillTo(s.folder)
			s.commit(2)
			require.NoError(s.T, s.Folder.Close())
			s.Folder = &spooling.Folder{}
			s.Sink.Close()
			s.Open()
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStranded(t, time.Second)
			s.Die()
			other(s)
			s.At = s.At.Add(time.Second)
			_, pods := s.Follow("pods", "Pod")
			for rv := 14; rv < 17; rv++ {
				require.NoError(t, pods.Update(streamtest.Served(t, "Pod", "first", rv)))
			}
			s.Pump()
			before := s.versions()
			s.Die()
			s.SpillTo(s.folder)
			require.Nil(t, s.Folder.Spool(), "the spool can be neither used nor set aside")
			require.Zero(t, s.Queue.Stats().Spooled)
			require.Equal(t, before, s.versions())
		})
	}
}
