package feed_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/apiserver/internal/feed"
	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/patch"
)

var (
	one, two = &history.Stream{ID: 1}, &history.Stream{ID: 2}
	errAway  = errors.New("the database is away")
)

// A memoryRecord is a record in memory. Each delta is its own commit, with its seq as number.
type memoryRecord struct {
	deltas   []history.Version
	relists  []history.Relist
	readings int
	away     bool
	wide     int64 // commits for each delta; 0 means 1
}

// record adds deltas of a stream with texts of a size.
func (t *memoryRecord) record(stream *history.Stream, count, size int) {
	for range count {
		v := history.Version{Doc: make(patch.Doc, size)}
		v.Seq, v.Stream = int64(len(t.deltas)+1), stream
		t.deltas = append(t.deltas, v)
	}
}

func (t *memoryRecord) last() int64 { return int64(len(t.deltas)) }

// relist makes a list close a gap of a stream with the last delta.
func (t *memoryRecord) relist(stream *history.Stream) {
	t.relists = append(t.relists, history.Relist{Stream: stream.ID, Batch: t.last(), Seq: t.last()})
}

func (t *memoryRecord) Versions(_ context.Context, q history.Query) iter.Seq2[history.Version, error] {
	t.readings++
	return func(yield func(history.Version, error) bool) {
		if t.away {
			yield(history.Version{}, errAway)
			return
		}
		for _, v := range t.deltas[q.FromSeq-1 : q.ToSeq] {
			if (q.Streams == nil || slices.Contains(q.Streams, v.Stream.ID)) && !yield(v, nil) {
				return
			}
		}
	}
}

func (t *memoryRecord) BatchAt(_ context.Context, seq int64) (int64, error) {
	return seq * max(t.wide, 1), nil
}

func (t *memoryRecord) Relists(_ context.Context, after, upTo int64) (found []history.Relist, err error) {
	for _, r := range t.relists {
		if r.Batch > after && r.Batch <= upTo {
			found = append(found, r)
		}
	}
	return found, nil
}

// all returns everything that a Reader delivers, until it has no more.
func all(t *testing.T, r *feed.Reader) (given []string, err error) {
	t.Helper()
	for more := true; more && err == nil; {
		more, err = r.Read(t.Context(), func(e *feed.Event) error {
			given = append(given, name(e))
			return nil
		})
	}
	return given, err
}

func name(e *feed.Event) string {
	if e.Relist != nil {
		return fmt.Sprintf("gap of %d", e.Relist.Stream)
	}
	return fmt.Sprint(e.Seq)
}

func reader(t *testing.T, f *feed.Feed, streams ...int32) *feed.Reader {
	t.Helper()
	r, err := f.Reader(t.Context(), history.Scope{Streams: streams})
	require.NoError(t, err)
	t.Cleanup(r.Close)
	return r
}

func TestJoinedReadersShareOneReadOfTheRecord(t *testing.T) {
	source := &memoryRecord{}
	source.record(one, 5, 10)
	f := feed.New(feed.Record{Deltas: source, Commits: source}, feed.Options{})
	f.SeekTo(5, 0)
	early, now := reader(t, f), reader(t, f)
	early.Begin(2)
	given, err := all(t, early)
	require.NoError(t, err)
	require.Equal(t, []string{"3", "4", "5"}, given)
	before := source.readings
	source.record(one, 2, 10)
	require.NoError(t, f.Advance(t.Context(), 7, 0))
	for _, r := range []*feed.Reader{early, now} {
		given, err := all(t, r)
		require.NoError(t, err)
		require.Equal(t, []string{"6", "7"}, given)
		require.EqualValues(t, 7, r.Seq())
	}
	require.Equal(t, before+1, source.readings)
}

func TestAReaderThatFallsBehindTheBufferEnds(t *testing.T) {
	source := &memoryRecord{}
	f := feed.New(feed.Record{Deltas: source, Commits: source}, feed.Options{Bytes: 100_000})
	slow, fast, late := reader(t, f), reader(t, f), reader(t, f, 2)
	for _, r := range []*feed.Reader{slow, fast} {
		_, err := all(t, r)
		require.NoError(t, err)
	}
	for range 20 {
		source.record(one, 1, 10_000)
		require.NoError(t, f.Advance(t.Context(), source.last(), 0))
		_, err := all(t, fast)
		require.NoError(t, err)
	}
	_, err := all(t, slow)
	require.ErrorIs(t, err, feed.ErrBehind)
	source.record(two, 1, 10)
	require.NoError(t, f.Advance(t.Context(), source.last(), 0))
	given, err := all(t, late)
	require.NoError(t, err, "a reader that has not caught up reads the record")
	require.Equal(t, []string{"21"}, given)
	require.LessOrEqual(t, f.Kept(), int64(100_000))
}

func TestAfterALargeAdvanceEachReaderReadsTheRecordAtItsPace(t *testing.T) {
	source := &memoryRecord{}
	f := feed.New(feed.Record{Deltas: source, Commits: source}, feed.Options{Bytes: 100_000})
	r := reader(t, f)
	_, err := all(t, r)
	require.NoError(t, err)
	source.record(one, 30, 10_000)
	require.NoError(t, f.Advance(t.Context(), 30, 0))
	require.Zero(t, f.Kept())
	given, err := all(t, r)
	require.NoError(t, err)
	require.Len(t, given, 30)
}

func TestASeekForwardDeliversAllDeltasAndASeekBackwardEndsReaders(t *testing.T) {
	source := &memoryRecord{}
	source.record(one, 9, 10)
	f := feed.New(feed.Record{Deltas: source, Commits: source}, feed.Options{})
	f.SeekTo(3, 0)
	r := reader(t, f)
	changed := f.Changed()
	f.SeekTo(8, 0)
	<-changed
	given, err := all(t, r)
	require.NoError(t, err)
	require.Equal(t, []string{"4", "5", "6", "7", "8"}, given)
	f.SeekTo(4, 0)
	_, err = all(t, r)
	require.ErrorIs(t, err, feed.ErrBackward)
	f.SeekTo(9, 0)
	_, err = all(t, r)
	require.ErrorIs(t, err, feed.ErrBackward, "the error remains")
	given, err = all(t, reader(t, f))
	require.NoError(t, err)
	require.Empty(t, given)
	f.Close()
	_, err = all(t, reader(t, f))
	require.ErrorIs(t, err, feed.ErrClosed)
}

func TestTheEndOfAGapComesInItsPlace(t *testing.T) {
	source := &memoryRecord{}
	source.record(one, 4, 10)
	source.relist(one)
	source.record(two, 3, 10)
	f := feed.New(feed.Record{Deltas: source, Commits: source}, feed.Options{})
	f.SeekTo(2, 0)
	r, other := reader(t, f), reader(t, f, 2)
	require.NoError(t, f.Advance(t.Context(), 7, 0))
	given, err := all(t, r)
	require.NoError(t, err)
	require.Equal(t, []string{"3", "4", "gap of 1", "5", "6", "7"}, given)
	given, err = all(t, other)
	require.NoError(t, err)
	require.Equal(t, []string{"5", "6", "7"}, given, "another stream gets no end of the gap")
}

// TestTheEndOfAGapWithoutDeltasComesWhenItIsPassed has additional commits between those of the deltas. Their numbers are at least a hundred times the seqs.
func TestTheEndOfAGapWithoutDeltasComesWhenItIsPassed(t *testing.T) {
	source := &memoryRecord{wide: 100}
	source.record(one, 5, 10)
	source.relists = []history.Relist{{Stream: 1, Batch: 301, Seq: 3}, {Stream: 1, Batch: 302, Seq: 3}}
	f := feed.New(feed.Record{Deltas: source, Commits: source}, feed.Options{})
	f.SeekTo(2, 0)
	r, slow := reader(t, f), reader(t, f)
	require.NoError(t, f.Advance(t.Context(), 3, 0))
	given, err := all(t, r)
	require.NoError(t, err)
	require.Equal(t, []string{"3"}, given)
	for _, move := range []func(){func() { require.NoError(t, f.Advance(t.Context(), 3, 301)) }, func() { f.SeekTo(3, 302) }} {
		changed := f.Changed()
		move()
		<-changed
		given, err = all(t, r)
		require.NoError(t, err)
		require.Equal(t, []string{"gap of 1"}, given)
		move() // The Feed is already there.
		given, err = all(t, r)
		require.NoError(t, err)
		require.Empty(t, given)
	}
	given, err = all(t, reader(t, f))
	require.NoError(t, err)
	require.Empty(t, given, "the gap ended before")
	require.NoError(t, f.Advance(t.Context(), 5, 0))
	for reader, want := range map[*feed.Reader][]string{r: {"4", "5"}, slow: {"3", "gap of 1", "gap of 1", "4", "5"}} {
		given, err = all(t, reader)
		require.NoError(t, err)
		require.Equal(t, want, given)
	}
}

func TestAFeedDoesNotMoveIfTheRecordCannotBeRead(t *testing.T) {
	source := &memoryRecord{away: true}
	f := feed.New(feed.Record{Deltas: source, Commits: source}, feed.Options{})
	r := reader(t, f)
	source.record(one, 3, 10)
	require.ErrorIs(t, f.Advance(t.Context(), 3, 0), errAway)
	require.Zero(t, f.Seq())
	source.away = false
	require.NoError(t, f.Advance(t.Context(), 3, 0))
	given, err := all(t, r)
	require.NoError(t, err)
	require.Equal(t, []string{"1", "2", "3"}, given)
	require.ErrorContains(t, f.Advance(t.Context(), 2, 0), "backward")
}

// follower is a Reader with the deltas that it has delivered.
type follower struct {
	*feed.Reader
	stream int32
	given  []string
	done   bool
}

func TestEachDeltaIsDeliveredOnceAndInOrderWithAllMovesOfAFeed(t *testing.T) {
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 1))
		source := &memoryRecord{}
		f := feed.New(feed.Record{Deltas: source, Commits: source}, feed.Options{Bytes: 40_000})
		var followers []*follower
		for range 400 {
			switch random.IntN(6) {
			case 0:
				stream := int32(1 + random.IntN(2))
				followers = append(followers, &follower{Reader: reader(t, f, stream), stream: stream, given: expected(source, stream, f.Seq())})
			case 1:
				source.record([]*history.Stream{one, two}[random.IntN(2)], 1+random.IntN(20), 1+random.IntN(3000))
				if random.IntN(4) == 0 {
					source.relist(one)
				}
			case 2:
				require.NoError(t, f.Advance(t.Context(), f.Seq()+random.Int64N(source.last()-f.Seq()+1), 0))
			case 3:
				if random.IntN(4) == 0 {
					f.SeekTo(f.Seq()+random.Int64N(source.last()-f.Seq()+1), 0)
				}
			default:
				if len(followers) > 0 {
					followers[random.IntN(len(followers))].follow(t, source, random.IntN(2) == 0)
				}
			}
		}
		for _, r := range followers {
			r.follow(t, source, true)
		}
	}
}

// follow reads some or all of the available events, and compares all delivered deltas with the record.
func (r *follower) follow(t *testing.T, source *memoryRecord, whole bool) {
	t.Helper()
	if r.done {
		return
	}
	var err error
	for more := true; more && err == nil; more = more && whole {
		more, err = r.Read(t.Context(), func(e *feed.Event) error {
			r.given = append(r.given, name(e))
			return nil
		})
	}
	if errors.Is(err, feed.ErrBehind) {
		r.done = true
		return
	}
	require.NoError(t, err)
	require.Equal(t, expected(source, r.stream, r.Seq()), r.given)
}

// expected returns what a Reader of a stream delivers up to a seq.
func expected(source *memoryRecord, stream int32, upTo int64) (names []string) {
	relists := source.relists
	for _, v := range source.deltas[:upTo] {
		if v.Stream.ID == stream {
			names = append(names, fmt.Sprint(v.Seq))
		}
		for ; len(relists) > 0 && relists[0].Seq == v.Seq; relists = relists[1:] {
			if relists[0].Stream == stream {
				names = append(names, fmt.Sprintf("gap of %d", stream))
			}
		}
	}
	return names
}
