package deltafifo

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/cache"

	"github.com/kuberewind/kuberewind/delta"
)

// consume commits until the queue is closed and empty, and takes some batches back. It returns the committed entries,
// in order.
func consume(t *testing.T, q *Queue, commit func([]Entry)) []Entry {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	committed := []Entry{}
	for {
		entries, err := q.Next(context.Background(), 1+random.IntN(50), 0, 0)
		if errors.Is(err, cache.ErrFIFOClosed) {
			return committed
		}
		if err != nil {
			t.Error(err)
			return committed
		}
		done := len(entries)
		if random.IntN(4) == 0 {
			done = random.IntN(len(entries) + 1)
		}
		commit(entries[:done])
		committed = append(committed, entries[:done]...)
		q.Done(done)
		if done < len(entries) {
			q.Requeue()
		}
	}
}

func TestManyStreamsAndOneConsumerLoseNothingAndKeepTheirOrder(t *testing.T) {
	const streams, each, bound = 8, 2000, 20_000
	q := New(Options{MaxBytes: bound, BookmarkLinger: 1})
	var producers sync.WaitGroup
	for s := range streams {
		f := q.FIFO(FIFOOptions{Stream: s, KeyFunction: nameOf})
		producers.Go(func() {
			for i := range each {
				if err := f.Update(&object{name: "a", rv: strconv.Itoa(i), size: i % 3000}); err != nil {
					t.Error(err)
				}
				if err := f.Bookmark(strconv.Itoa(i)); err != nil {
					t.Error(err)
				}
				if held := q.Stats().Bytes; held > bound {
					t.Errorf("%d bytes held", held)
				}
			}
		})
	}
	go func() { producers.Wait(); q.Close() }()
	last := make([]int, streams)
	committed := consume(t, q, func([]Entry) {})
	for i, e := range committed {
		if i > 0 {
			require.False(t, e.Observed.Before(committed[i-1].Observed))
		}
		if e.Bookmark() {
			continue
		}
		s := e.Stream.(int)
		require.Equal(t, strconv.Itoa(last[s]), e.Position)
		last[s]++
	}
	for s := range streams {
		require.Equal(t, each, last[s])
	}
	require.Zero(t, q.Stats().Entries)
}

func TestAListOfKnownObjectsShowsNothingNewDuringCommits(t *testing.T) {
	const rounds, objects = 300, 40
	k := knowing()
	q, f := newFIFO(Options{MaxBytes: 30_000, BookmarkLinger: 1}, FIFOOptions{KnownObjects: k})
	go func() {
		defer q.Close()
		for round := range rounds {
			list := []any{}
			for i := range objects {
				o := obj(strconv.Itoa(i), "u", strconv.Itoa(round))
				list = append(list, o)
				if err := f.Update(o); err != nil {
					t.Error(err)
				}
			}
			// The vanishing object is added and deleted again, so that it is sometimes held and sometimes known.
			if err := errors.Join(f.Add(obj("x", "u", "1")), f.Delete(obj("x", "u", "2"))); err != nil {
				t.Error(err)
			}
			if err := takeIn(f, "expired", "", strconv.Itoa(round), list[:objects/2], list[objects/2:]); err != nil {
				t.Error(err)
			}
		}
	}()
	lists := 0
	for _, e := range consume(t, q, func(entries []Entry) { k.commit(entries...) }) {
		if e.Marker != nil {
			lists++
			require.Equal(t, delta.Marker{
				Kind: delta.Replaced, Cause: "expired", ToRV: e.Position, Unchanged: objects, FromTime: e.Marker.FromTime,
			}, *e.Marker)
		} else {
			require.Equal(t, delta.SourceWatch, e.Source)
		}
	}
	require.Equal(t, rounds, lists)
}

func TestResyncsAndWatchEventsTakeTurns(t *testing.T) {
	const rounds = 200
	k := knowing()
	q, f := newFIFO(Options{MaxBytes: 10_000, BookmarkLinger: 1}, FIFOOptions{KnownObjects: k})
	var producers sync.WaitGroup
	producers.Go(func() {
		for i := range rounds {
			for key := range 10 {
				if err := f.Update(obj(strconv.Itoa(key), "u", strconv.Itoa(i))); err != nil {
					t.Error(err)
				}
			}
		}
	})
	producers.Go(func() {
		for range rounds {
			if err := f.Resync(); err != nil {
				t.Error(err)
			}
		}
	})
	go func() { producers.Wait(); q.Close() }()
	latest := map[string]*object{}
	for _, e := range consume(t, q, func(entries []Entry) { k.commit(entries...) }) {
		o := e.Delta.Object.(*object)
		if e.Source == delta.SourceResync {
			require.Equal(t, latest[o.name], o, "a keyframe has the version before it")
		}
		latest[o.name] = o
	}
	require.Nil(t, f.stream.latestByKey)
}

func TestCloseAtAnyMomentUnblocksEveryCall(t *testing.T) {
	for round := range 50 {
		q := New(Options{MaxBytes: 3000})
		var wg sync.WaitGroup
		for s := range 6 {
			f := q.FIFO(FIFOOptions{KeyFunction: nameOf})
			wg.Go(func() {
				for i := 0; ; i++ {
					if err := f.Add(sized("a", 300+i%500)); err != nil {
						return
					}
					if s%2 == 0 && i == round {
						f.Close()
					}
				}
			})
		}
		for range round {
			entries, err := q.Next(t.Context(), 5, 0, 0)
			require.NoError(t, err)
			q.Done(len(entries))
		}
		q.Close()
		wg.Wait()
		require.Zero(t, q.Stats().Waiting)
	}
}
