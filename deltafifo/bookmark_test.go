package deltafifo

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTheLastOfConsecutiveBookmarksIsKept(t *testing.T) {
	q := New(Options{})
	pods := q.FIFO(FIFOOptions{Stream: "pods", KeyFunction: nameOf})
	jobs := q.FIFO(FIFOOptions{Stream: "jobs", KeyFunction: nameOf})
	require.NoError(t, pods.Bookmark("1"))
	require.NoError(t, jobs.Bookmark("2"))
	require.NoError(t, pods.Bookmark("3"))
	require.NoError(t, pods.Bookmark(""))
	require.NoError(t, pods.Add(obj("a", "u", "4")))
	require.NoError(t, pods.Bookmark("5"))
	require.NoError(t, jobs.Bookmark("6"))
	require.Equal(t, []string{"bookmark >3", "watch Added a/u@4=body-4 >4", "bookmark >5", "bookmark >6"}, describe(next(t, q)))
}

func TestAHandedOutBookmarkIsNotChanged(t *testing.T) {
	q, f := newFIFO(Options{BookmarkLinger: 1}, FIFOOptions{})
	require.NoError(t, f.Bookmark("1"))
	require.Equal(t, []string{"bookmark >1"}, describe(next(t, q)))
	require.NoError(t, f.Bookmark("2"))
	q.Done(1)
	require.Equal(t, []string{"bookmark >2"}, describe(next(t, q)))
	require.NoError(t, f.Bookmark("3"))
	q.Requeue()
	require.NoError(t, f.Bookmark("4"))
	require.Equal(t, []string{"bookmark >2", "bookmark >4"}, describe(next(t, q)))
}

func TestABookmarkHasItsTimeOfArrival(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Options{})
		start := time.Now()
		pods := q.FIFO(FIFOOptions{KeyFunction: nameOf})
		jobs := q.FIFO(FIFOOptions{KeyFunction: nameOf})
		require.NoError(t, pods.Bookmark("1"))
		elapse(time.Second)
		require.NoError(t, jobs.Add(obj("a", "u", "2")))
		elapse(time.Second)
		require.NoError(t, pods.Bookmark("3"))
		entries := next(t, q)
		require.Equal(t, []string{"watch Added a/u@2=body-2 >2", "bookmark >3"}, describe(entries))
		require.Equal(t, 2*time.Second, entries[1].Observed.Sub(start))
	})
}

func TestABookmarkDoesNotOvertakeWaitingCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Options{MaxBytes: 2000})
		defer q.Close()
		pods := q.FIFO(FIFOOptions{KeyFunction: nameOf})
		jobs := q.FIFO(FIFOOptions{KeyFunction: nameOf})
		require.NoError(t, pods.Bookmark("1"))
		waiting := call(func() error { return jobs.Add(&object{name: "a", size: 2000, rv: "2"}) })
		synctest.Wait()
		elapse(time.Second)
		require.NoError(t, pods.Bookmark("3"))
		first := next(t, q)
		require.Equal(t, []string{"bookmark >3"}, describe(first))
		q.Done(1)
		require.NoError(t, <-waiting)
		require.False(t, next(t, q)[0].Observed.Before(first[0].Observed))
	})
}

func TestBookmarksByThemselvesWaitLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Options{})
		pods := q.FIFO(FIFOOptions{KeyFunction: nameOf})
		jobs := q.FIFO(FIFOOptions{KeyFunction: nameOf})
		result := callNext(t.Context(), q, 100, 0, time.Second)
		for range 4 {
			require.NoError(t, pods.Bookmark("1"))
			elapse(time.Second)
		}
		require.NoError(t, jobs.Bookmark("1"))
		got := <-result
		require.Len(t, got.entries, 2)
		require.Equal(t, DefaultBookmarkLinger, got.after)
	})
}

func TestNewerBookmarksDoNotDelayTheCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Options{})
		pods := q.FIFO(FIFOOptions{KeyFunction: nameOf})
		jobs := q.FIFO(FIFOOptions{KeyFunction: nameOf})
		require.NoError(t, pods.Bookmark("1"))
		elapse(time.Second)
		require.NoError(t, jobs.Bookmark("1"))
		elapse(time.Second)
		require.NoError(t, pods.Bookmark("2"))
		require.Equal(t, DefaultBookmarkLinger-2*time.Second, (<-callNext(t.Context(), q, 100, 0, time.Second)).after)
	})
}

func TestADeltaEndsTheLongWaitOfBookmarks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, f := newFIFO(Options{BookmarkLinger: time.Hour}, FIFOOptions{})
		result := callNext(t.Context(), q, 100, 0, time.Second)
		require.NoError(t, f.Bookmark("1"))
		elapse(time.Minute)
		require.NoError(t, f.Add(obj("a", "u", "2")))
		got := <-result
		require.Len(t, got.entries, 2)
		require.Equal(t, time.Minute+time.Second, got.after)
	})
}

func TestAProvedPositionDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Options{BookmarkLinger: time.Hour})
		pods := q.FIFO(FIFOOptions{KeyFunction: nameOf})
		jobs := q.FIFO(FIFOOptions{KeyFunction: nameOf})
		result := callNext(t.Context(), q, 100, 0, time.Second)
		require.NoError(t, pods.Bookmark("1"))
		elapse(time.Minute)
		require.NoError(t, jobs.Proved("2"))
		got := <-result
		require.Equal(t, []string{"bookmark >1", "bookmark >2"}, describe(got.entries))
		require.Equal(t, time.Minute, got.after)
		result = callNext(t.Context(), q, 100, 0, time.Second)
		require.NoError(t, pods.Bookmark("3"))
		require.Equal(t, time.Hour, (<-result).after, "the next one has its time")
	})
}

func TestEntriesThatWaitWithAProvedPositionAreHandedOutWithIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Options{BookmarkLinger: time.Hour})
		pods := q.FIFO(FIFOOptions{KeyFunction: nameOf})
		jobs := q.FIFO(FIFOOptions{KeyFunction: nameOf})
		require.NoError(t, pods.Bookmark("1"))
		require.NoError(t, jobs.Proved("2"))
		require.Equal(t, []string{"bookmark >1"}, describe((<-callNext(t.Context(), q, 1, 0, time.Second)).entries))
		second := <-callNext(t.Context(), q, 100, 0, time.Second)
		require.Equal(t, []string{"bookmark >2"}, describe(second.entries))
		require.Zero(t, second.after)
	})
}
