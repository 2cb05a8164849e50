package deltafifo

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/cache"
)

// sized is an object that counts for a given number of bytes.
func sized(name string, bytes int) *object {
	return &object{name: name, rv: "1", size: bytes - entryBytes}
}

func TestEveryCallThatEnqueuesBlocksWhileThereIsNoRoom(t *testing.T) {
	for name, enqueue := range map[string]func(f *FIFO) error{
		"Add":     func(f *FIFO) error { return f.Add(sized("b", 600)) },
		"Update":  func(f *FIFO) error { return f.Update(sized("b", 600)) },
		"Delete":  func(f *FIFO) error { return f.Delete(sized("b", 600)) },
		"Replace": func(f *FIFO) error { return f.Replace([]any{sized("b", 600)}, "2") },
		"Resync":  func(f *FIFO) error { return f.Resync() },
		"ReplacePage": func(f *FIFO) error {
			return errors.Join(f.BeginReplace("expired", "", "1"), f.ReplacePage([]any{sized("b", 600)}, "2"))
		},
		"EndReplace":  func(f *FIFO) error { return errors.Join(f.BeginReplace("expired", "", "1"), f.EndReplace("2")) },
		"Bookmark":    func(f *FIFO) error { return f.Bookmark("2") },
		"Interrupted": func(f *FIFO) error { return f.Interrupted("forbidden", "") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := New(Options{MaxBytes: 1000})
				defer q.Close()
				other := q.FIFO(FIFOOptions{KeyFunction: nameOf})
				f := q.FIFO(FIFOOptions{KeyFunction: nameOf, KnownObjects: knowing(sized("k", 600))})
				require.NoError(t, other.Add(sized("a", 900)))
				result := call(func() error { return enqueue(f) })
				synctest.Wait()
				require.Empty(t, result)
				require.Equal(t, 1, q.Stats().Waiting)
				next(t, q)
				synctest.Wait()
				require.Empty(t, result, "handing out must not make room")
				for open := true; open; {
					q.Done(q.Stats().HandedOut)
					synctest.Wait()
					require.LessOrEqual(t, q.Stats().Bytes, int64(1000))
					open = len(next(t, q)) > 0
				}
				require.NoError(t, <-result)
			})
		})
	}
}

func TestAnEmptyQueueAcceptsAnEntryLargerThanTheBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, f := newFIFO(Options{MaxBytes: 1000}, FIFOOptions{})
		require.NoError(t, f.Add(sized("small", 300)))
		result := call(func() error { return f.Add(sized("large", 5000)) })
		synctest.Wait()
		require.Empty(t, result)
		require.Len(t, next(t, q), 1)
		q.Done(1)
		require.NoError(t, <-result)
		require.Equal(t, int64(5000), q.Stats().Bytes)
		result = call(func() error { return f.Add(sized("small", 300)) })
		synctest.Wait()
		require.Empty(t, result)
		require.Len(t, next(t, q), 1)
		q.Done(1)
		require.NoError(t, <-result)
	})
}

func TestWaitingCallsAreAdmittedInTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Options{MaxBytes: 1000})
		defer q.Close()
		first := q.FIFO(FIFOOptions{KeyFunction: nameOf})
		require.NoError(t, first.Add(sized("full", 1000)))
		arrived := time.Now()
		results := []<-chan error{}
		for i, bytes := range []int{1000, 300, 300} {
			f := q.FIFO(FIFOOptions{KeyFunction: nameOf})
			results = append(results, call(func() error { return f.Add(sized(fmt.Sprint("w", i), bytes)) }))
			synctest.Wait()
		}
		elapse(time.Second)
		require.Len(t, next(t, q), 1)
		q.Done(1)
		require.NoError(t, <-results[0])
		synctest.Wait()
		require.Empty(t, results[1], "a small entry must not pass a large one")
		large := next(t, q)
		require.Len(t, large, 1)
		require.Equal(t, arrived, large[0].Observed, "an entry is observed when it comes, not when it is let in")
		q.Done(1)
		require.NoError(t, <-results[1])
		require.NoError(t, <-results[2])
	})
}

func TestABusyStreamDoesNotBlockAQuietOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Options{MaxBytes: 1000})
		busy := q.FIFO(FIFOOptions{KeyFunction: nameOf})
		quiet := q.FIFO(FIFOOptions{KeyFunction: nameOf})
		flood := call(func() error {
			for {
				if err := busy.Add(sized("busy", 500)); err != nil {
					return err
				}
			}
		})
		synctest.Wait()
		result := call(func() error { return quiet.Add(sized("quiet", 500)) })
		synctest.Wait()
		for range 2 {
			next(t, q)
			q.Done(1)
			synctest.Wait()
		}
		require.NoError(t, <-result)
		q.Close()
		require.ErrorIs(t, <-flood, cache.ErrFIFOClosed)
	})
}

func TestCloseUnblocks(t *testing.T) {
	for name, closeIt := range map[string]func(q *Queue, f *FIFO){
		"the FIFO":  func(_ *Queue, f *FIFO) { f.Close(); f.Close() },
		"the queue": func(q *Queue, _ *FIFO) { q.Close(); q.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := New(Options{MaxBytes: 1000})
				defer q.Close()
				f := q.FIFO(FIFOOptions{KeyFunction: nameOf})
				other := q.FIFO(FIFOOptions{KeyFunction: nameOf})
				require.NoError(t, f.Add(sized("a", 600)))
				result := call(func() error { return f.Add(sized("b", 600)) })
				synctest.Wait()
				behind := call(func() error { return other.Add(sized("c", 400)) })
				synctest.Wait()
				closeIt(q, f)
				require.ErrorIs(t, <-result, cache.ErrFIFOClosed)
				require.ErrorIs(t, f.Add(sized("d", 300)), cache.ErrFIFOClosed)
				require.ErrorIs(t, f.Bookmark("9"), cache.ErrFIFOClosed)
				require.ErrorIs(t, f.Interrupted("forbidden", ""), cache.ErrFIFOClosed)
				require.ErrorIs(t, f.BeginReplace("expired", "", ""), cache.ErrFIFOClosed)
				require.ErrorIs(t, f.Replace(nil, "9"), cache.ErrFIFOClosed)
				if name == "the FIFO" {
					require.NoError(t, <-behind, "a call that waits after a cancelled one is admitted if it fits")
				} else {
					require.ErrorIs(t, <-behind, cache.ErrFIFOClosed)
				}
				require.Equal(t, "a", next(t, q)[0].Delta.Object.(*object).name, "a held entry stays")
			})
		})
	}
}

func TestStatsReportBlockedTimeAndTheAgeOfTheOldestEntry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Options{MaxBytes: 1000})
		f := q.FIFO(FIFOOptions{KeyFunction: nameOf})
		other := q.FIFO(FIFOOptions{KeyFunction: nameOf})
		require.NoError(t, f.Add(sized("a", 1000)))
		elapse(time.Second)
		r1 := call(func() error { return f.Add(sized("b", 500)) })
		synctest.Wait()
		elapse(time.Second)
		r2 := call(func() error { return other.Add(sized("c", 500)) })
		synctest.Wait()
		elapse(time.Second)
		require.Equal(t, Stats{
			Entries: 1, Bytes: 1000, MaxBytes: 1000, Waiting: 2, Blocked: 2 * time.Second, OldestAge: 3 * time.Second,
		}, q.Stats())
		next(t, q)
		q.Done(1)
		require.NoError(t, <-r1)
		require.NoError(t, <-r2)
		elapse(time.Second)
		require.Equal(t, Stats{
			Entries: 2, Bytes: 1000, MaxBytes: 1000, Blocked: 2 * time.Second, OldestAge: 3 * time.Second,
		}, q.Stats())
	})
}

func TestAStreamReportsHowLongItWasRecentlyBlocked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Options{MaxBytes: 1000})
		f, other := q.FIFO(FIFOOptions{KeyFunction: nameOf}), q.FIFO(FIFOOptions{KeyFunction: nameOf})
		require.NoError(t, f.Add(sized("a", 1000)))
		for range 2 {
			result := call(func() error { return f.Add(sized("a", 1000)) })
			elapse(3 * time.Second)
			next(t, q)
			q.Done(1)
			require.NoError(t, <-result)
			elapse(time.Minute)
		}
		require.Equal(t, 6*time.Second, f.HeldBack())
		require.Zero(t, other.HeldBack())
		elapse(5 * time.Minute)
		require.Zero(t, f.HeldBack())
	})
}

func TestBytesAreThoseOfTheTransformedObject(t *testing.T) {
	q, f := newFIFO(Options{}, FIFOOptions{Transformer: func(o any) (any, error) { return sized("a", 1000), nil }})
	require.NoError(t, f.Add(sized("a", 5000)))
	require.NoError(t, f.Delete(cache.DeletedFinalStateUnknown{Key: "a", Obj: sized("a", 2000)}))
	require.NoError(t, f.Delete(cache.DeletedFinalStateUnknown{Key: "a", Obj: "no size"}))
	require.NoError(t, f.Bookmark("1"))
	entries := next(t, q)
	require.Equal(t, []int{1000, 2000, entryBytes + unsizedBytes, entryBytes},
		[]int{entries[0].Bytes, entries[1].Bytes, entries[2].Bytes, entries[3].Bytes})
	require.Equal(t, int64(3000+entryBytes+unsizedBytes+entryBytes), q.Stats().Bytes)
}
