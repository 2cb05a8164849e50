package deltafifo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"pgregory.net/rapid"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/deltafifo/spool"
)

// numbered is an object whose resource version is its place in a history. numberedCodec is a codec of such objects.
type numbered struct{ metav1.ObjectMeta }

func number(n int, name string) *numbered {
	return &numbered{metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), ResourceVersion: strconv.Itoa(n)}}
}

func (o *numbered) Size() int { return 100 }

func (o *numbered) Digest() (d [16]byte) { copy(d[:], o.ResourceVersion); return d }

type numberedCodec struct{ streams map[string]any }

func (c numberedCodec) AppendEntry(to []byte, e *Entry) ([]byte, error) {
	kind := ""
	if e.Marker != nil {
		kind = string(e.Marker.Kind)
	}
	name, rv := "", ""
	switch o := e.Delta.Object.(type) {
	case *numbered:
		name, rv = o.Name, o.ResourceVersion
	case cache.DeletedFinalStateUnknown:
		name = o.Key
	}
	return fmt.Appendf(to, "%v|%s|%s|%s|%s|%s|%s|%d", e.Stream, e.Delta.Type, e.Source, e.Position, kind, name, rv, e.Observed.UnixNano()), nil
}

func (c numberedCodec) DecodeEntry(record []byte) (Entry, error) {
	f := bytes.Split(record, []byte("|"))
	nanos, err := strconv.ParseInt(string(f[7]), 10, 64)
	e := Entry{
		Stream: c.streams[string(f[0])], Delta: cache.Delta{Type: cache.DeltaType(f[1])}, Source: delta.Source(f[2]), Position: string(f[3]),
		Observed: time.Unix(0, nanos), Bytes: entryBytes + 100,
	}
	if len(f[4]) > 0 {
		e.Marker = &delta.Marker{Kind: delta.MarkerKind(f[4])}
	}
	if n, err := strconv.Atoi(string(f[6])); err == nil {
		e.Delta.Object = number(n, string(f[5]))
	} else if len(f[5]) > 0 {
		e.Delta.Object = cache.DeletedFinalStateUnknown{Key: string(f[5])}
	}
	return e, err
}

func spilling(t require.TestingT, dir string, maxBytes int64, events *[]SpillEvent) (*Queue, *spool.Spool) {
	s, err := spool.Open(spool.Options{Dir: dir, MaxBytes: 1 << 20, SegmentBytes: 4 << 10})
	require.NoError(t, err)
	return New(Options{MaxBytes: maxBytes, Spool: s, Codec: numberedCodec{map[string]any{"a": "a", "b": "b"}}, OnSpill: func(e SpillEvent) {
		if events != nil {
			*events = append(*events, e)
		}
	}}), s
}

// database is a place to commit batches. With each batch it notes the offset of the spool.
type database struct {
	rows []string
	next uint64
}

// commitNext moves a batch as the pump does, and dies at one of four points.
func (d *database) commitNext(t require.TestingT, q *Queue, most, diesAt int) {
	if q.Stats().Entries == 0 && q.Stats().Spooled == 0 {
		return
	}
	batch, err := q.Next(background(), most, 0, 0)
	require.NoError(t, err)
	next := q.Offset(len(batch))
	if diesAt == 1 {
		return
	}
	for _, e := range batch {
		d.rows = append(d.rows, e.Position)
	}
	d.next = next
	if diesAt == 2 {
		return
	}
	if diesAt == 3 { // The batch is committed, the process does not know it yet, and a spill begins.
		q.backlog.disk.after = 0
		q.SpillOverdue()
		return
	}
	q.Done(len(batch))
}

// Whenever the process dies, the committed entries and the spool follow each other without a break, and no entry comes
// twice.
func TestTheSpoolFollowsTheCommitsWheneverTheProcessDies(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "spool")
		require.NoError(rt, err)
		var d database
		q, s, _ := reborn(rt, dir, time.Now, &d)
		f := q.FIFO(FIFOOptions{Stream: "a"})
		served := 0
		for range rapid.IntRange(1, 40).Draw(rt, "steps") {
			switch rapid.SampledFrom([]string{"serve", "serve", "commit", "wait", "die"}).Draw(rt, "step") {
			case "serve":
				for range rapid.IntRange(1, 12).Draw(rt, "objects") {
					served++
					require.NoError(rt, f.Add(number(served, "x")))
				}
			case "commit":
				d.commitNext(rt, q, rapid.IntRange(1, 9).Draw(rt, "most"), 0)
			case "wait":
				q.backlog.disk.after = 0
				q.SpillOverdue()
				q.backlog.disk.after = DefaultSpillAfter
			case "die":
				d.commitNext(rt, q, 3, rapid.IntRange(0, 3).Draw(rt, "at"))
				require.NoError(rt, s.Close())
				q, s, served = reborn(rt, dir, time.Now, &d)
				f = q.FIFO(FIFOOptions{Stream: "a"})
			}
		}
		for len(d.rows) < served {
			d.commitNext(rt, q, 5, 0)
		}
		for i, position := range d.rows {
			require.Equal(rt, strconv.Itoa(i+1), position)
		}
		require.Len(rt, d.rows, served)
		require.NoError(rt, s.Close())
	})
}

// reborn is a process that goes on from the spool. The server serves the events after it.
func reborn(t require.TestingT, dir string, clock func() time.Time, d *database) (q *Queue, s *spool.Spool, served int) {
	s, err := spool.Open(spool.Options{Dir: dir, MaxBytes: 1 << 20, SegmentBytes: 4 << 10})
	require.NoError(t, err)
	codec := numberedCodec{map[string]any{"a": "a"}}
	served = len(d.rows)
	o := Options{MaxBytes: 2000, Now: clock, Spool: s, Codec: codec, Left: map[any]Spooled{}}
	require.NoError(t, s.Release(d.next))
	if s.First() < s.Next() {
		left := Spooled{}
		for s.SeekTo(s.First()); ; left.Entries++ {
			record, ok, err := s.Read()
			require.NoError(t, err)
			if !ok {
				break
			}
			e, err := ReadRecord(codec, record)
			require.NoError(t, err)
			e.Move(&left.Position)
			served, err = strconv.Atoi(e.Position)
			require.NoError(t, err)
		}
		s.SeekTo(s.First())
		if left.Entries > 0 {
			o.Left["a"] = left
		}
	}
	return New(o), s, served
}

func TestAFullQueueSpillsAndMemoryStaysBounded(t *testing.T) {
	var events []SpillEvent
	q, s := spilling(t, t.TempDir(), 4000, &events)
	defer func() { require.NoError(t, s.Close()) }()
	a, b := q.FIFO(FIFOOptions{Stream: "a"}), q.FIFO(FIFOOptions{Stream: "b"})
	for i := range 500 {
		require.NoError(t, []*FIFO{a, b}[i%2].Add(number(i+1, "x")))
		require.LessOrEqual(t, q.Stats().Bytes, int64(4000))
	}
	require.Equal(t, 500, q.Stats().Spooled)
	require.True(t, q.Stats().Spilling)
	var d database
	for i := 500; len(d.rows) < 520; i++ {
		if i < 520 {
			require.NoError(t, a.Add(number(i+1, "x")))
		}
		d.commitNext(t, q, 7, 0)
		require.LessOrEqual(t, q.Stats().Bytes, int64(4000))
	}
	for i, position := range d.rows {
		require.Equal(t, strconv.Itoa(i+1), position)
	}
	require.Zero(t, q.Stats().Spooled)
	require.False(t, q.Stats().Spilling)
	require.Zero(t, s.Bytes())
	require.Len(t, events, 2)
	require.True(t, events[0].Spilling)
	require.False(t, events[1].Spilling)
	require.True(t, a.HasSynced())
}

func TestOldEntriesGoToTheSpoolEvenIfMemoryHasRoom(t *testing.T) {
	synctest.Test(t, testWhatWaitsForLong)
}

func testWhatWaitsForLong(t *testing.T) {
	dir := t.TempDir()
	var d database
	standing := func() time.Time { return time.Unix(1000, 0) } // The clock of the record may stand still.
	q, s, _ := reborn(t, dir, standing, &d)
	f := q.FIFO(FIFOOptions{Stream: "a"})
	require.NoError(t, f.Add(number(1, "x")))
	time.Sleep(DefaultSpillAfter - 1)
	require.NoError(t, f.Add(number(2, "x")))
	require.NoError(t, f.Add(number(3, "x")))
	q.SpillOverdue()
	require.Zero(t, q.Stats().Spooled)
	time.Sleep(time.Nanosecond)
	require.Equal(t, DefaultSpillAfter, q.Stats().OldestAge)
	q.SpillOverdue()
	require.Equal(t, 3, q.Stats().Spooled)
	require.Equal(t, 3, q.Stats().Entries, "it is still in memory")
	d.commitNext(t, q, 1, 0)
	require.False(t, q.Stats().Spilling, "the held entries have not waited for long")
	require.NoError(t, s.Close()) // The process dies.

	q, s, served := reborn(t, dir, standing, &d)
	defer func() { require.NoError(t, s.Close()) }()
	require.Equal(t, 3, served)
	for len(d.rows) < 3 {
		d.commitNext(t, q, 1, 0)
	}
	require.Equal(t, []string{"1", "2", "3"}, d.rows)
	require.Zero(t, s.Bytes())
}

func TestOldEntriesStayInMemoryIfTheDiskTakesNothing(t *testing.T) {
	working, err := spool.Open(spool.Options{Dir: t.TempDir(), MaxBytes: 1 << 20})
	require.NoError(t, err)
	defer func() { require.NoError(t, working.Close()) }()
	disk := &failingSpool{Spool: working}
	disk.full.Store(true)
	var events []SpillEvent
	q := New(Options{SpillAfter: 1, Spool: disk, Codec: numberedCodec{map[string]any{"a": "a"}}, OnSpill: func(e SpillEvent) { events = append(events, e) }})
	f := q.FIFO(FIFOOptions{Stream: "a"})
	for i := range 3 {
		require.NoError(t, f.Add(number(i+1, "x")))
		q.SpillOverdue()
	}
	require.Equal(t, 3, q.Stats().Entries)
	require.Zero(t, q.Stats().Spooled)
	require.Len(t, events, 1)
	require.ErrorIs(t, events[0].Err, errDisk)
	var d database
	d.commitNext(t, q, 2, 0)
	require.Len(t, events, 1, "an entry still waits that is in memory only")
	d.commitNext(t, q, 2, 0)
	require.Len(t, events, 2, "no entry has to be spooled")
	require.NoError(t, events[1].Err)

	require.NoError(t, f.Add(number(4, "x")))
	q.SpillOverdue()
	require.Len(t, events, 3, "a disk that fails again is reported again")
	disk.full.Store(false)
	q.SpillOverdue()
	require.Len(t, events, 4)
	require.True(t, events[3].Spilling)
	require.Equal(t, 1, q.Stats().Spooled)
}

// failingSpool is a disk that rejects writes.
type failingSpool struct {
	Spool
	full    atomic.Bool
	release error
}

func (s *failingSpool) Release(before uint64) error {
	return errors.Join(s.Spool.Release(before), s.release)
}

var errDisk = errors.New("no space left on device")

func (s *failingSpool) Append(index uint64, record []byte) error {
	if s.full.Load() {
		return errDisk
	}
	return s.Spool.Append(index, record)
}

func TestAFullDiskBlocksTheWatchesUntilItHasRoomAgain(t *testing.T) {
	working, err := spool.Open(spool.Options{Dir: t.TempDir(), MaxBytes: 1 << 20})
	require.NoError(t, err)
	defer func() { require.NoError(t, working.Close()) }()
	disk := &failingSpool{Spool: working}
	events := make(chan SpillEvent, 10)
	q := New(Options{MaxBytes: 1000, Spool: disk, Codec: numberedCodec{map[string]any{"a": "a", "b": "b"}}, OnSpill: func(e SpillEvent) { events <- e }})
	a, b := q.FIFO(FIFOOptions{Stream: "a"}), q.FIFO(FIFOOptions{Stream: "b"})
	for i := range 10 {
		require.NoError(t, a.Add(number(i+1, "x")))
	}
	require.True(t, (<-events).Spilling)
	disk.full.Store(true)
	done := make(chan error, 1)
	go func() { done <- a.Add(number(11, "x")) }()
	require.ErrorIs(t, (<-events).Err, errDisk)
	require.Empty(t, done)
	disk.full.Store(false)
	require.NoError(t, b.Add(number(12, "x")), "the next call tries again")
	require.NoError(t, <-done)
	e := <-events
	require.NoError(t, e.Err, "it can be written again")
	require.True(t, e.Spilling)
	var d database
	for len(d.rows) < 12 {
		d.commitNext(t, q, 4, 0)
	}
	require.Equal(t, []string{"1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12"}, d.rows)
}

func TestTheQueueDrainsEvenIfTheDiskStaysFull(t *testing.T) {
	working, err := spool.Open(spool.Options{Dir: t.TempDir(), MaxBytes: 1 << 20})
	require.NoError(t, err)
	defer func() { require.NoError(t, working.Close()) }()
	disk := &failingSpool{Spool: working}
	q := New(Options{MaxBytes: 1000, Spool: disk, Codec: numberedCodec{map[string]any{"a": "a"}}})
	a := q.FIFO(FIFOOptions{Stream: "a"})
	for i := range 10 {
		require.NoError(t, a.Add(number(i+1, "x")))
	}
	disk.full.Store(true)
	done := make(chan error, 1)
	go func() {
		var err error
		for i := 10; i < 20 && err == nil; i++ {
			err = a.Add(number(i+1, "x"))
		}
		done <- err
	}()
	var d database
	for len(d.rows) < 20 {
		d.commitNext(t, q, 4, 0)
	}
	require.NoError(t, <-done)
	for i, position := range d.rows {
		require.Equal(t, strconv.Itoa(i+1), position)
	}
}

// The queue removes committed entries even if the disk cannot remove anything.
func TestADiskThatTurnsReadOnlyIsDrained(t *testing.T) {
	working, err := spool.Open(spool.Options{Dir: t.TempDir(), MaxBytes: 1 << 20})
	require.NoError(t, err)
	defer func() { require.NoError(t, working.Close()) }()
	disk := &failingSpool{Spool: working}
	var events []SpillEvent
	q := New(Options{MaxBytes: 1000, Spool: disk, Codec: numberedCodec{map[string]any{"a": "a"}}, OnSpill: func(e SpillEvent) { events = append(events, e) }})
	a := q.FIFO(FIFOOptions{Stream: "a"})
	for i := range 10 {
		require.NoError(t, a.Add(number(i+1, "x")))
	}
	disk.release = syscall.EROFS
	var d database
	for len(d.rows) < 10 {
		d.commitNext(t, q, 4, 0)
	}
	require.Equal(t, uint64(10), d.next)
	require.ErrorIs(t, events[1].Err, syscall.EROFS)
	require.NoError(t, events[len(events)-1].Err, "no entry waits any more")
}

func TestTheOffsetCountsEntriesThatWereNeverSpooled(t *testing.T) {
	q, s := spilling(t, t.TempDir(), 1<<20, nil)
	defer func() { require.NoError(t, s.Close()) }()
	f := q.FIFO(FIFOOptions{Stream: "a"})
	var d database
	for i := range 6 {
		require.NoError(t, f.Add(number(i+1, "x")))
	}
	d.commitNext(t, q, 2, 0)
	require.Equal(t, uint64(5), q.Offset(3))
	q.backlog.disk.after = 0
	q.SpillOverdue()
	require.Equal(t, uint64(2), s.First(), "the index of a record is the number of its entry")
	require.Equal(t, uint64(5), q.Offset(3))
}

// The state for the comparison may be on disk. The list waits until it is in memory, and knows entries that are spilled
// meanwhile.
func TestAListIsComparedWithSpilledEntries(t *testing.T) {
	q, s := spilling(t, t.TempDir(), 1500, nil)
	defer func() { require.NoError(t, s.Close()) }()
	f := q.FIFO(FIFOOptions{Stream: "a"})
	for i := range 10 {
		require.NoError(t, f.Add(number(i+1, fmt.Sprint("x", i))))
	}
	require.False(t, f.Tail().Vacant(), "entries on disk only are not read")
	begun, ready := make(chan error, 1), make(chan error, 1)
	go func() { ready <- f.Tail().AwaitMemory() }()
	go func() { begun <- f.BeginReplace("expired", "", "10") }()
	var d database
	for f.behind() > 0 {
		require.Empty(t, begun)
		require.Empty(t, ready)
		d.commitNext(t, q, 1, 0)
	}
	require.NoError(t, <-begun)
	require.NoError(t, <-ready)
	held := q.Stats().Entries
	page := []any{}
	for i := range 5 {
		page = append(page, number(100+i, fmt.Sprint("y", i)))
	}
	require.NoError(t, f.ReplacePage(page, "200"))
	require.Positive(t, f.behind(), "a part of the page is on disk only")
	require.NoError(t, f.EndReplace("200"))
	var kinds []string
	for left := held + 5 + 1; left > 0 || q.Stats().Spooled > 0; left-- {
		batch, err := q.Next(background(), 1, 0, 0)
		require.NoError(t, err)
		e := batch[0]
		switch {
		case e.Marker != nil:
			kinds = append(kinds, string(e.Marker.Kind))
		case e.Source == delta.SourceInferred:
			kinds = append(kinds, "gone")
		case e.Delta.Type == cache.Sync:
			kinds = append(kinds, "sync")
		}
		q.Done(1)
	}
	want := []string{"sync", "sync", "sync", "sync", "sync"}
	for range held {
		want = append(want, "gone")
	}
	require.Equal(t, append(want, string(delta.Replaced)), kinds)
}

func (f *FIFO) behind() int {
	f.queue.mu.Lock()
	defer f.queue.mu.Unlock()
	return f.stream.behind
}

func TestAClosedQueueKeepsItsEntriesOnDisk(t *testing.T) {
	q, s := spilling(t, t.TempDir(), 1000, nil)
	f := q.FIFO(FIFOOptions{Stream: "a"})
	for i := range 20 {
		require.NoError(t, f.Add(number(i+1, "x")))
	}
	q.Close()
	handed := 0
	for {
		batch, err := q.Next(background(), 1, 0, 0)
		if errors.Is(err, cache.ErrFIFOClosed) {
			break
		}
		require.NoError(t, err)
		q.Done(len(batch))
		handed++
	}
	require.Less(t, handed, 20)
	require.Equal(t, 20-handed, int(s.Next()-s.First()))
	require.NoError(t, s.Close())
}

func background() context.Context { return context.Background() }
