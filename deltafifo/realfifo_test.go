package deltafifo

import (
	"errors"
	"strconv"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/cache"
)

// This table compares the requirements of client-go's in-order queue (RealFIFO) with this queue. The tests below check
// them in our words. If a row names another test, that test does.
//
//	client-go demands                                     here
//	order kept per producer                               holds
//	every delta delivered, none merged, line kept         holds
//	Delete of an unknown key delivered                    holds
//	Replace after a held Deleted gives the item again     holds
//	Replace deletes held but unlisted objects, once       holds
//	Replace deletes known but unlisted objects            holds
//	tombstones carry the newest held object               holds
//	inferred deletions come before the items              differs: after them; a list comes page by page, and only its
//	                                                      end shows what is absent
//	items of a list come as Replaced                      differs: as Sync, and Entry.Source names the list
//	every item of a list comes, changed or not            differs where objects have identity: the same UID, version and
//	                                                      content is nothing new. Objects without identity: holds
//	two items with one key both come                      differs: one name is one object; the first is kept, the other
//	                                                      reported (TestTheFirstOfTwoItemsWithOneKey…)
//	transformer: once per object, not for tombstones      holds
//	Resync skips keys that are held                       holds
//	HasSynced after the first list is processed           holds
//	keys of tombstones                                    holds; of Deltas: differs, no caller enqueues Deltas
//	Pop unblocks on Close                                 holds
//	PopBatch: unique keys, initial list apart, 1,000      holds
//	PopBatch delivers items whose key fails               differs: they are never enqueued
//	atomic ReplacedAll and SyncAll                        differs: a whole cluster's list as one item cannot be bounded;
//	                                                      the Replaced marker carries the list's version
//	bookmarks as deltas                                   differs: as entries of Next; Pop passes over them
//	an item is removed even if processing it failed       differs: it stays (TestADeltaStaysUntilItIsProcessed)
//	process runs under the queue's lock                   differs: without it (TestProcessRunsWithoutALock)

// item is an object without identity.
type item struct {
	name string
	val  any
}

func items(objs ...item) []any {
	list := []any{}
	for _, o := range objs {
		list = append(list, o)
	}
	return list
}

// popAll pops all held deltas.
func popAll(t *testing.T, q *Queue, f *FIFO) cache.Deltas {
	t.Helper()
	all := cache.Deltas{}
	for q.Stats().Entries > 0 && f.feeder.syncing.deltas > 0 {
		popped, err := f.Pop(func(any, bool) error { return nil })
		require.NoError(t, err)
		require.Len(t, popped, 1)
		all = append(all, popped.(cache.Deltas)...)
	}
	return all
}

func change(t cache.DeltaType, o any) cache.Delta { return cache.Delta{Type: t, Object: o} }

func gone(o item) cache.Delta {
	return change(cache.Deleted, cache.DeletedFinalStateUnknown{Key: o.name, Obj: o})
}

func TestRealFIFOKeepsTheOrderOfEachProducer(t *testing.T) {
	_, f := newFIFO(Options{}, FIFOOptions{})
	const amount = 500
	results := []<-chan error{}
	for p := range 2 {
		results = append(results, call(func() error {
			for i := range amount {
				if err := f.Add(item{strconv.Itoa(p), i}); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	last := map[string]int{"0": -1, "1": -1}
	for range 2 * amount {
		popped, err := f.Pop(func(any, bool) error { return nil })
		require.NoError(t, err)
		got := popped.(cache.Deltas).Newest().Object.(item)
		require.Equal(t, last[got.name]+1, got.val)
		last[got.name]++
	}
	for _, r := range results {
		require.NoError(t, <-r)
	}
}

func TestRealFIFODeliversEachObjectThatWasAdded(t *testing.T) {
	foo, foo2, bar, baz := item{"foo", 1}, item{"foo", 2}, item{"bar", 6}, item{"baz", 7}
	for name, c := range map[string]struct {
		known []any
		put   func(f *FIFO) error
		want  cache.Deltas
	}{
		"add, update and delete": {
			put:  func(f *FIFO) error { return errors.Join(f.Add(foo), f.Update(foo2), f.Delete(foo2)) },
			want: cache.Deltas{change(cache.Added, foo), change(cache.Updated, foo2), change(cache.Deleted, foo2)},
		},
		"no delta overtakes another": {
			put:  func(f *FIFO) error { return errors.Join(f.Add(foo), f.Add(bar), f.Add(foo2)) },
			want: cache.Deltas{change(cache.Added, foo), change(cache.Added, bar), change(cache.Added, foo2)},
		},
		"the deletion of an unknown key": {
			put:  func(f *FIFO) error { return f.Delete(baz) },
			want: cache.Deltas{change(cache.Deleted, baz)},
		},
		"a list after a held deletion": {
			known: items(foo),
			put:   func(f *FIFO) error { return errors.Join(f.Delete(foo), f.Replace(items(foo2), "")) },
			want:  cache.Deltas{change(cache.Deleted, foo), change(cache.Sync, foo2)},
		},
		"a list without a held object": {
			put:  func(f *FIFO) error { return errors.Join(f.Add(foo), f.Replace(nil, "0")) },
			want: cache.Deltas{change(cache.Added, foo), gone(foo)},
		},
		"a list without an object that is held as deleted": {
			put:  func(f *FIFO) error { return errors.Join(f.Add(foo), f.Delete(foo), f.Replace(nil, "0")) },
			want: cache.Deltas{change(cache.Added, foo), change(cache.Deleted, foo)},
		},
		"two lists without a held object": {
			put:  func(f *FIFO) error { return errors.Join(f.Add(foo), f.Replace(nil, "0"), f.Replace(nil, "1")) },
			want: cache.Deltas{change(cache.Added, foo), gone(foo)},
		},
		"lists with it, then one without": {
			put: func(f *FIFO) error {
				return errors.Join(f.Add(foo), f.Replace(items(foo), "0"), f.Replace(items(foo), "0"), f.Replace(nil, "0"))
			},
			want: cache.Deltas{change(cache.Added, foo), change(cache.Sync, foo), change(cache.Sync, foo), gone(foo)},
		},
		"added, deleted, added, and not listed": {
			put:  func(f *FIFO) error { return errors.Join(f.Add(foo), f.Delete(foo), f.Add(foo2), f.Replace(nil, "0")) },
			want: cache.Deltas{change(cache.Added, foo), change(cache.Deleted, foo), change(cache.Added, foo2), gone(foo2)},
		},
		"known objects that are not listed": {
			known: items(foo, bar, baz),
			put:   func(f *FIFO) error { return errors.Join(f.Delete(baz), f.Replace(items(foo), "0")) },
			want:  cache.Deltas{change(cache.Deleted, baz), change(cache.Sync, foo), gone(bar)},
		},
		"a known object that is held again and not listed": {
			known: items(foo, item{"bar", 1}),
			put: func(f *FIFO) error {
				return errors.Join(f.Delete(item{"bar", 1}), f.Add(bar), f.Replace(items(foo), "0"))
			},
			want: cache.Deltas{change(cache.Deleted, item{"bar", 1}), change(cache.Added, bar), change(cache.Sync, foo), gone(bar)},
		},
		"a resync": {
			known: items(foo),
			put:   func(f *FIFO) error { return f.Resync() },
			want:  cache.Deltas{change(cache.Sync, foo)},
		},
		"a resync after an update": {
			known: items(foo),
			put:   func(f *FIFO) error { return errors.Join(f.Update(foo2), f.Resync()) },
			want:  cache.Deltas{change(cache.Updated, foo2)},
		},
		"a resync after a deletion": {
			known: items(foo),
			put:   func(f *FIFO) error { return errors.Join(f.Delete(foo2), f.Resync()) },
			want:  cache.Deltas{change(cache.Deleted, foo2)},
		},
		"bookmarks and markers": {
			put: func(f *FIFO) error {
				return errors.Join(f.Bookmark("1"), f.Replace(nil, "2"), f.Bookmark("3"), f.Add(foo))
			},
			want: cache.Deltas{change(cache.Added, foo)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			q, f := newFIFO(Options{}, FIFOOptions{KnownObjects: knowing(c.known...)})
			require.NoError(t, c.put(f))
			require.Equal(t, c.want, popAll(t, q, f))
			require.Nil(t, q.backlog.memory.nodes.head, "the queue must be empty")
		})
	}
}

func TestRealFIFOTransformsEachObjectOnce(t *testing.T) {
	q, f := newFIFO(Options{}, FIFOOptions{Transformer: func(o any) (any, error) {
		i, ok := o.(item)
		if !ok {
			return nil, errors.New("not an object from outside")
		}
		i.val = i.val.(int) + 1
		return i, nil
	}})
	require.NoError(t, errors.Join(
		f.Add(item{"foo", 10}), f.Update(item{"foo", 20}), f.Delete(item{"foo", 30}),
		f.Replace(items(item{"bar", 40}), ""), f.Replace(nil, "")))
	require.Equal(t, cache.Deltas{
		change(cache.Added, item{"foo", 11}), change(cache.Updated, item{"foo", 21}), change(cache.Deleted, item{"foo", 31}),
		change(cache.Sync, item{"bar", 41}), gone(item{"bar", 41}),
	}, popAll(t, q, f))
}

func TestRealFIFOHasSyncedWhenTheFirstListIsProcessed(t *testing.T) {
	a, b := item{"a", 1}, item{"b", 2}
	pop := func(f *FIFO) error { _, err := f.Pop(func(any, bool) error { return nil }); return err }
	for name, c := range map[string]struct {
		do   func(f *FIFO) error
		want bool
	}{
		"nothing":                 {func(f *FIFO) error { return nil }, false},
		"an add":                  {func(f *FIFO) error { return f.Add(a) }, true},
		"an empty list":           {func(f *FIFO) error { return f.Replace(nil, "0") }, true},
		"a list":                  {func(f *FIFO) error { return f.Replace(items(a, b), "0") }, false},
		"a list partly processed": {func(f *FIFO) error { return errors.Join(f.Replace(items(a, b), "0"), pop(f)) }, false},
		"a list processed":        {func(f *FIFO) error { return errors.Join(f.Replace(items(a, b), "0"), pop(f), pop(f)) }, true},
		"a bookmark":              {func(f *FIFO) error { return f.Bookmark("1") }, false},
	} {
		t.Run(name, func(t *testing.T) {
			_, f := newFIFO(Options{}, FIFOOptions{})
			require.NoError(t, c.do(f))
			require.Equal(t, c.want, f.HasSynced())
		})
	}
}

func TestRealFIFOMarksTheFirstListDeletionsIncluded(t *testing.T) {
	_, f := newFIFO(Options{}, FIFOOptions{KnownObjects: knowing(item{"foo", 5}, item{"bar", 6}, item{"baz", 7})})
	require.NoError(t, f.Replace(items(item{"foo", 5}), "0"))
	require.NoError(t, f.Add(item{"qux", 1}))
	for _, want := range []bool{true, true, true, false} {
		require.Equal(t, !want, f.HasSynced())
		_, err := f.Pop(func(_ any, initial bool) error {
			require.Equal(t, want, initial)
			require.Equal(t, !want, f.HasSynced(), "not before the last one is processed")
			return nil
		})
		require.NoError(t, err)
	}
}

func TestRealFIFOPopUnblocksWhenClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, closeIt := range []func(q *Queue, f *FIFO){func(q *Queue, _ *FIFO) { q.Close() }, func(_ *Queue, f *FIFO) { f.Close() }} {
			q, f := newFIFO(Options{}, FIFOOptions{})
			results := []<-chan error{}
			for range 10 {
				results = append(results, call(func() error { _, err := f.Pop(nil); return err }))
			}
			synctest.Wait()
			closeIt(q, f)
			for _, r := range results {
				require.ErrorIs(t, <-r, cache.ErrFIFOClosed)
			}
		}
	})
}

func TestRealFIFOPopsInBatches(t *testing.T) {
	i1, i2, i3, i4 := item{"1", 1}, item{"2", 2}, item{"3", 3}, item{"4", 4}
	s, u := cache.Sync, cache.Updated
	type batch struct {
		deltas  []cache.Delta
		initial bool
	}
	for name, c := range map[string]struct {
		list, updates []any
		want          []batch
	}{
		"a list":                   {items(i1, i2, i3), nil, []batch{{[]cache.Delta{{Type: s, Object: i1}, {Type: s, Object: i2}, {Type: s, Object: i3}}, true}}},
		"a list and then the rest": {items(i1, i2), items(i3, i4), []batch{{[]cache.Delta{{Type: s, Object: i1}, {Type: s, Object: i2}}, true}, {[]cache.Delta{{Type: u, Object: i3}, {Type: u, Object: i4}}, false}}},
		"a key again":              {items(i1), items(i1, i1), []batch{{[]cache.Delta{{Type: s, Object: i1}}, true}, {[]cache.Delta{{Type: u, Object: i1}}, false}, {[]cache.Delta{{Type: u, Object: i1}}, false}}},
		"a key again, between":     {nil, items(i2, i3, i2), []batch{{[]cache.Delta{{Type: u, Object: i2}, {Type: u, Object: i3}}, false}, {[]cache.Delta{{Type: u, Object: i2}}, false}}},
	} {
		t.Run(name, func(t *testing.T) {
			q, f := newFIFO(Options{}, FIFOOptions{})
			require.NoError(t, f.Replace(c.list, "1"))
			for _, o := range c.updates {
				require.NoError(t, errors.Join(f.Update(o), f.Bookmark("2")))
			}
			got := []batch{}
			for f.feeder.syncing.deltas > 0 {
				require.NoError(t, f.PopBatch(
					func(d []cache.Delta, initial bool) error { got = append(got, batch{d, initial}); return nil },
					func(o any, initial bool) error {
						got = append(got, batch{[]cache.Delta{*o.(cache.Deltas).Newest()}, initial})
						return nil
					}))
			}
			require.Equal(t, c.want, got)
			require.Nil(t, q.backlog.memory.nodes.head)
		})
	}
}

func TestRealFIFOBoundsABatch(t *testing.T) {
	_, f := newFIFO(Options{}, FIFOOptions{})
	for i := range maxPopBatch + 1 {
		require.NoError(t, f.Add(item{strconv.Itoa(i), i}))
	}
	sizes := []int{}
	for range 2 {
		require.NoError(t, f.PopBatch(
			func(d []cache.Delta, _ bool) error { sizes = append(sizes, len(d)); return nil },
			func(any, bool) error { sizes = append(sizes, 1); return nil }))
	}
	require.Equal(t, []int{maxPopBatch, 1}, sizes)
}
