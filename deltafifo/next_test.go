package deltafifo

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/cache"
)

func TestEntriesComeOutInTheOrderOfArrivalOverAllStreams(t *testing.T) {
	q := New(Options{})
	pods := q.FIFO(FIFOOptions{Stream: "pods", KeyFunction: nameOf})
	jobs := q.FIFO(FIFOOptions{Stream: "jobs", KeyFunction: nameOf})
	require.NoError(t, pods.Add(obj("a", "1", "10")))
	require.NoError(t, jobs.Add(obj("a", "2", "11")))
	require.NoError(t, pods.Update(obj("a", "1", "12")))
	require.NoError(t, pods.Delete(obj("a", "1", "13")))
	require.NoError(t, jobs.Bookmark("14"))

	entries := next(t, q)
	require.Equal(t, []string{
		"watch Added a/1@10=body-10 >10", "watch Added a/2@11=body-11 >11", "watch Updated a/1@12=body-12 >12",
		"watch Deleted a/1@13=body-13 >13", "bookmark >14",
	}, describe(entries))
	require.Equal(t, []any{"pods", "jobs", "pods", "pods", "jobs"},
		[]any{entries[0].Stream, entries[1].Stream, entries[2].Stream, entries[3].Stream, entries[4].Stream})
}

func TestEntriesStayUntilTheyAreDone(t *testing.T) {
	q, f := newFIFO(Options{}, FIFOOptions{})
	for _, rv := range []string{"1", "2", "3"} {
		require.NoError(t, f.Add(obj("a", "u", rv)))
	}
	batch, err := q.Next(t.Context(), 2, 0, 0)
	require.NoError(t, err)
	require.Len(t, batch, 2)
	require.Equal(t, 3, q.Stats().Entries)
	require.Equal(t, 2, q.Stats().HandedOut)

	q.Done(1)
	require.Equal(t, 2, q.Stats().Entries)
	q.Requeue()
	require.Equal(t, 0, q.Stats().HandedOut)
	again := next(t, q)
	require.Equal(t, []string{"2", "3"}, []string{again[0].Position, again[1].Position})
	q.Done(2)
	require.Equal(t, Stats{MaxBytes: DefaultMaxBytes}, q.Stats())
}

func TestDoneOfMoreThanWasHandedOutIsAMistake(t *testing.T) {
	q, f := newFIFO(Options{}, FIFOOptions{})
	require.NoError(t, f.Add(obj("a", "u", "1")))
	require.Panics(t, func() { q.Done(1) })
	next(t, q)
	require.Panics(t, func() { q.Done(-1) })
	q.Done(1)
}

func TestABatchKeepsToItsLimitsButHasOneEntryAtLeast(t *testing.T) {
	q, f := newFIFO(Options{}, FIFOOptions{})
	for range 4 {
		require.NoError(t, f.Add(&object{name: "a", size: 1000}))
	}
	one := int64(entryBytes + 1000)
	for _, c := range []struct {
		items, want int
		bytes       int64
	}{{3, 3, 0}, {0, 4, 0}, {0, 2, 2*one + 1}, {0, 2, 2 * one}, {0, 1, 1}} {
		batch, err := q.Next(t.Context(), c.items, c.bytes, 0)
		require.NoError(t, err)
		require.Len(t, batch, c.want)
		q.Requeue()
	}
}

func TestObservedTimesDoNotDecreaseWhenTheClockDoes(t *testing.T) {
	base := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	clock := []time.Time{base, base.Add(-time.Hour), base.Add(time.Second)}
	q, f := newFIFO(Options{Now: func() time.Time {
		now := clock[0]
		if len(clock) > 1 {
			clock = clock[1:]
		}
		return now
	}}, FIFOOptions{})
	for range 3 {
		require.NoError(t, f.Add(obj("a", "u", "1")))
	}
	entries := next(t, q)
	require.Equal(t, base, entries[0].Observed)
	require.Equal(t, base, entries[1].Observed)
	require.Equal(t, base.Add(time.Second), entries[2].Observed)
}

func TestNextWaitsForAnEntryAndLingersForMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, f := newFIFO(Options{}, FIFOOptions{})
		result := callNext(t.Context(), q, 10, 0, time.Second)
		elapse(time.Minute)
		require.NoError(t, f.Add(obj("a", "u", "1")))
		elapse(time.Second - 1)
		require.NoError(t, f.Add(obj("a", "u", "2")))
		synctest.Wait()
		require.Empty(t, result)
		got := <-result
		require.NoError(t, got.err)
		require.Len(t, got.entries, 2)
		require.Equal(t, time.Minute+time.Second, got.after)
	})
}

func TestTheLingerCountsFromTheArrivalOfTheOldest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, f := newFIFO(Options{}, FIFOOptions{})
		require.NoError(t, f.Add(obj("a", "u", "1")))
		elapse(900 * time.Millisecond)
		require.Equal(t, 100*time.Millisecond, (<-callNext(t.Context(), q, 10, 0, time.Second)).after)
	})
}

func TestTheLingerEndsThoughTheStampingClockStandsStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, f := newFIFO(Options{Now: func() time.Time { return time.Time{} }}, FIFOOptions{})
		require.NoError(t, f.Add(obj("a", "u", "1")))
		require.Equal(t, time.Second, (<-callNext(t.Context(), q, 10, 0, time.Second)).after)
	})
}

func TestALingeringNextReturnsAsSoonAsWaitingIsUseless(t *testing.T) {
	ended := errors.New("ended")
	for name, c := range map[string]struct {
		end  func(q *Queue, f *FIFO, cancel context.CancelCauseFunc) error
		want int
		err  error
	}{
		"items reached": {want: 3, end: func(_ *Queue, f *FIFO, _ context.CancelCauseFunc) error {
			return errors.Join(f.Add(&object{name: "b"}), f.Add(&object{name: "c"}))
		}},
		"bytes reached": {want: 2, end: func(_ *Queue, f *FIFO, _ context.CancelCauseFunc) error {
			return f.Add(&object{name: "b", size: 5000})
		}},
		"a stream waits for room": {want: 1, end: func(_ *Queue, f *FIFO, _ context.CancelCauseFunc) error {
			call(func() error { return f.Add(&object{name: "b", size: 9900}) })
			return nil
		}},
		"closed":  {want: 1, end: func(q *Queue, _ *FIFO, _ context.CancelCauseFunc) error { q.Close(); return nil }},
		"context": {err: ended, end: func(_ *Queue, _ *FIFO, cancel context.CancelCauseFunc) error { cancel(ended); return nil }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q, f := newFIFO(Options{MaxBytes: 10000}, FIFOOptions{})
				defer q.Close()
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				require.NoError(t, f.Add(&object{name: "a"}))
				result := callNext(ctx, q, 3, 5000+2*entryBytes, time.Hour)
				synctest.Wait()
				require.Empty(t, result)
				require.NoError(t, c.end(q, f, cancel))
				got := <-result
				require.ErrorIs(t, got.err, c.err)
				require.Len(t, got.entries, c.want)
				require.Zero(t, got.after)
				require.Equal(t, c.want, q.Stats().HandedOut)
			})
		})
	}
}

func TestNextAfterCloseDrainsAndThenReportsTheEnd(t *testing.T) {
	q, f := newFIFO(Options{}, FIFOOptions{})
	require.NoError(t, f.Add(obj("a", "u", "1")))
	q.Close()
	require.Len(t, next(t, q), 1)
	_, err := q.Next(t.Context(), 1, 0, 0)
	require.ErrorIs(t, err, cache.ErrFIFOClosed)
	q.Requeue()
	require.Len(t, next(t, q), 1)
	q.Done(1)
}

func TestNextWakesForARequeueAndForAClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, f := newFIFO(Options{}, FIFOOptions{})
		require.NoError(t, f.Add(obj("a", "u", "1")))
		require.Len(t, next(t, q), 1)
		result := callNext(t.Context(), q, 1, 0, 0)
		synctest.Wait()
		q.Requeue()
		require.Len(t, (<-result).entries, 1)
		result = callNext(t.Context(), q, 1, 0, 0)
		synctest.Wait()
		q.Close()
		require.ErrorIs(t, (<-result).err, cache.ErrFIFOClosed)
	})
}

func TestASecondNextWaitsForItsTurnUntilItsContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, f := newFIFO(Options{}, FIFOOptions{})
		first := callNext(t.Context(), q, 1, 0, 0)
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, (<-callNext(ctx, q, 1, 0, 0)).err, context.DeadlineExceeded)
		require.NoError(t, f.Add(obj("a", "u", "1")))
		require.Len(t, (<-first).entries, 1)
	})
}

func TestAQueueIsDrainedInOneWayOnly(t *testing.T) {
	q, f := newFIFO(Options{}, FIFOOptions{})
	require.NoError(t, f.Add(obj("a", "u", "1")))
	next(t, q)
	_, err := f.Pop(func(any, bool) error { return nil })
	require.ErrorIs(t, err, errDrainedBothWays)

	q, f = newFIFO(Options{}, FIFOOptions{})
	require.NoError(t, f.Add(obj("a", "u", "1")))
	_, err = f.Pop(func(any, bool) error { return nil })
	require.NoError(t, err)
	_, err = q.Next(t.Context(), 1, 0, 0)
	require.ErrorIs(t, err, errDrainedBothWays)
}
