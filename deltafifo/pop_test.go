package deltafifo

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/cache"
)

var errProcess = errors.New("process")

func TestADeltaStaysUntilItIsProcessed(t *testing.T) {
	q, f := newFIFO(Options{}, FIFOOptions{})
	require.NoError(t, errors.Join(f.Add(item{"a", 1}), f.Add(item{"b", 2})))
	for range 2 {
		popped, err := f.Pop(func(any, bool) error { return errProcess })
		require.ErrorIs(t, err, errProcess)
		require.Equal(t, cache.Deltas{change(cache.Added, item{"a", 1})}, popped)
		require.Equal(t, 2, q.Stats().Entries)
		require.Zero(t, q.Stats().HandedOut)
	}
	require.Panics(t, func() { _, _ = f.Pop(func(any, bool) error { panic("process") }) })
	require.ErrorIs(t, f.PopBatch(func([]cache.Delta, bool) error { return errProcess }, nil), errProcess)
	require.Zero(t, q.Stats().HandedOut)
	require.Equal(t, cache.Deltas{change(cache.Added, item{"a", 1}), change(cache.Added, item{"b", 2})}, popAll(t, q, f))
}

func TestProcessRunsWithoutALock(t *testing.T) {
	q, f := newFIFO(Options{}, FIFOOptions{})
	require.NoError(t, f.Add(item{"a", 1}))
	_, err := f.Pop(func(any, bool) error {
		require.Equal(t, 1, q.Stats().HandedOut)
		return errors.Join(f.Add(item{"b", 2}), f.Replace(items(item{"b", 2}), "1"), f.Resync())
	})
	require.NoError(t, err)
	require.Equal(t, cache.Deltas{
		change(cache.Added, item{"b", 2}), change(cache.Sync, item{"b", 2}), gone(item{"a", 1}),
	}, popAll(t, q, f), "a delta that is being processed counts as held")
}

func TestASecondPopWaitsForTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, f := newFIFO(Options{}, FIFOOptions{})
		require.NoError(t, errors.Join(f.Add(item{"a", 1}), f.Add(item{"b", 2})))
		release := make(chan struct{})
		first := call(func() error {
			_, err := f.Pop(func(any, bool) error { <-release; return errProcess })
			return err
		})
		synctest.Wait()
		popped := any(nil)
		second := call(func() (err error) {
			popped, err = f.Pop(func(any, bool) error { return nil })
			return err
		})
		synctest.Wait()
		require.Empty(t, second)
		close(release)
		require.ErrorIs(t, <-first, errProcess)
		require.NoError(t, <-second)
		require.Equal(t, cache.Deltas{change(cache.Added, item{"a", 1})}, popped)
	})
}

func TestPopTakesFromItsOwnStream(t *testing.T) {
	q := New(Options{})
	pods := q.FIFO(FIFOOptions{KeyFunction: nameOf})
	jobs := q.FIFO(FIFOOptions{KeyFunction: nameOf})
	require.NoError(t, errors.Join(pods.Add(item{"p", 1}), jobs.Add(item{"j", 1}), pods.Add(item{"p", 2}), jobs.Add(item{"j", 2})))
	require.Equal(t, cache.Deltas{change(cache.Added, item{"j", 1}), change(cache.Added, item{"j", 2})}, popAll(t, q, jobs))
	require.Equal(t, 2, q.Stats().Entries)
	require.Equal(t, cache.Deltas{change(cache.Added, item{"p", 1}), change(cache.Added, item{"p", 2})}, popAll(t, q, pods))
}

func TestPopMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, f := newFIFO(Options{MaxBytes: 1000}, FIFOOptions{})
		require.NoError(t, f.Add(sized("a", 1000)))
		result := call(func() error { return f.Add(sized("b", 1000)) })
		synctest.Wait()
		_, err := f.Pop(func(any, bool) error { return nil })
		require.NoError(t, err)
		require.NoError(t, <-result)
		require.NoError(t, f.PopBatch(nil, func(any, bool) error { return nil }))
		require.Zero(t, q.Stats().Entries)

		require.NoError(t, f.Bookmark("1"))
		result = call(func() error { return f.Add(sized("c", 1000)) })
		synctest.Wait()
		_, err = f.Pop(func(any, bool) error { return nil })
		require.NoError(t, err, "a bookmark that is passed over makes room, too")
		require.NoError(t, <-result)
	})
}
