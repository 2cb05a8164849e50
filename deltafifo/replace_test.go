package deltafifo

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/delta"
)

func takeIn(f *FIFO, cause delta.Cause, from, rv string, pages ...[]any) error {
	if err := f.BeginReplace(cause, "", from); err != nil {
		return err
	}
	for _, page := range pages {
		if err := f.ReplacePage(page, rv); err != nil {
			return err
		}
	}
	return f.EndReplace(rv)
}

func TestAFirstListGivesSyncDeltasAndAMarkerThatMovesThePosition(t *testing.T) {
	q, f := newFIFO(Options{}, FIFOOptions{})
	require.NoError(t, takeIn(f, "first_list", "", "9", []any{obj("a", "1", "3")}, []any{obj("b", "2", "4")}))
	require.Equal(t, []string{
		"list Sync a/1@3=body-3 >", "list Sync b/2@4=body-4 >", "replaced first_list ..9 +2 ~0 -0 =0 >9",
	}, describe(next(t, q)))
}

func TestAnObjectThatCouldNotBeReadHasNotVanished(t *testing.T) {
	for unread, want := range map[string][]string{
		"a": {"inferred Deleted {b b/2@2=body-2} >", "replaced expired 2..9 +1 ~0 -1 =0 >9"},
		"":  {"replaced expired 2..9 +1 ~0 -0 =0 >9"}, // It may be any object.
	} {
		q, f := newFIFO(Options{}, FIFOOptions{KnownObjects: knowing(obj("a", "1", "1"), obj("b", "2", "2"))})
		require.ErrorIs(t, f.Unreadable(unread), errNotReplacing)
		require.NoError(t, f.BeginReplace("expired", "", "2"))
		require.NoError(t, f.ReplacePage([]any{obj("c", "3", "3")}, "9"))
		require.NoError(t, f.Unreadable(unread))
		require.NoError(t, f.EndReplace("9"))
		require.Equal(t, append([]string{"relist Sync c/3@3=body-3 >"}, want...), describe(next(t, q)))
	}
}

func TestARelistEnqueuesOnlyDifferencesFromTheTail(t *testing.T) {
	reinterpreted := obj("schema", "5", "5")
	reinterpreted.body = "defaulted"
	list := []any{
		obj("same", "1", "1"), obj("changed", "2", "20"), obj("recreated", "30", "21"), obj("appeared", "4", "4"), reinterpreted,
	}
	before := []*object{
		obj("same", "1", "1"), obj("changed", "2", "2"), obj("recreated", "3", "3"), obj("schema", "5", "5"), obj("vanished", "6", "6"),
	}
	want := []string{
		"relist Sync changed/2@20=body-20 >",
		"inferred Deleted {recreated recreated/3@3=body-3} >", "relist Sync recreated/30@21=body-21 >",
		"relist Sync appeared/4@4=body-4 >",
		"schema Sync schema/5@5=defaulted >",
		"inferred Deleted {vanished vanished/6@6=body-6} >",
		"replaced expired 6..30 +2 ~2 -2 =1 >30",
	}
	for name, state := range map[string]func(k *known, q *Queue, f *FIFO){
		"known": func(k *known, q *Queue, f *FIFO) {
			for _, o := range before {
				k.objs[o.name] = o
			}
		},
		"held": func(k *known, q *Queue, f *FIFO) {
			for _, o := range before {
				require.NoError(t, f.Add(o))
			}
		},
		"held over another known state": func(k *known, q *Queue, f *FIFO) {
			for _, o := range before {
				k.objs[o.name] = obj(o.name, "older", "0")
				require.NoError(t, f.Update(o))
			}
			k.objs["deleted"] = obj("deleted", "7", "0")
			require.NoError(t, f.Delete(obj("deleted", "7", "7")))
		},
		"handed out": func(k *known, q *Queue, f *FIFO) {
			for _, o := range before {
				require.NoError(t, f.Add(o))
			}
			next(t, q)
		},
		"handed out and known, not done": func(k *known, q *Queue, f *FIFO) {
			for _, o := range before {
				require.NoError(t, f.Add(o))
			}
			k.commit(next(t, q)...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			k := knowing()
			q, f := newFIFO(Options{}, FIFOOptions{KnownObjects: k})
			state(k, q, f)
			held := q.Stats().Entries
			require.NoError(t, takeIn(f, "expired", "6", "30", list[:2], list[2:]))
			q.Requeue()
			require.Equal(t, want, describe(next(t, q)[held:]))
		})
	}
}

func TestAHeldDeletionOutweighsTheKnownObject(t *testing.T) {
	q, f := newFIFO(Options{}, FIFOOptions{KnownObjects: knowing(obj("a", "1", "1"), obj("b", "2", "2"))})
	require.NoError(t, f.Delete(obj("a", "1", "3")))
	require.NoError(t, f.Delete(obj("b", "2", "4")))
	next(t, q)
	require.NoError(t, takeIn(f, "expired", "4", "9", []any{obj("a", "1", "1")}))
	require.Equal(t, []string{"relist Sync a/1@1=body-1 >", "replaced expired 4..9 +1 ~0 -0 =0 >9"}, describe(next(t, q)))
}

func TestAfterAbortNothingHasVanishedAndThePositionStays(t *testing.T) {
	q, f := newFIFO(Options{}, FIFOOptions{KnownObjects: knowing(obj("a", "1", "1"))})
	require.NoError(t, f.BeginReplace("expired", "", "1"))
	require.NoError(t, f.ReplacePage([]any{obj("b", "2", "5")}, "9"))
	f.AbortReplace()
	require.ErrorIs(t, f.EndReplace("9"), errNotReplacing)
	require.ErrorIs(t, f.ReplacePage(nil, "9"), errNotReplacing)
	require.Equal(t, []string{"relist Sync b/2@5=body-5 >"}, describe(next(t, q)))
	require.Nil(t, f.stream.latestByKey, "the comparison must release its state")

	require.NoError(t, takeIn(f, "expired", "1", "12", []any{obj("a", "1", "1"), obj("b", "2", "5")}))
	require.Equal(t, []string{"replaced expired 1..12 +0 ~0 -0 =2 >12"}, describe(next(t, q)))
	require.Nil(t, f.stream.latestByKey)
}

func TestANewListAbortsTheListUnderWay(t *testing.T) {
	q, f := newFIFO(Options{}, FIFOOptions{KnownObjects: knowing(obj("a", "1", "1"))})
	require.NoError(t, f.BeginReplace("expired", "", "1"))
	require.NoError(t, f.ReplacePage([]any{obj("b", "2", "5")}, "9"))
	require.NoError(t, takeIn(f, "expired", "1", "10", []any{obj("a", "1", "1")}))
	require.Equal(t, []string{
		"relist Sync b/2@5=body-5 >", "inferred Deleted {b b/2@5=body-5} >", "replaced expired 1..10 +0 ~0 -1 =1 >10",
	}, describe(next(t, q)))
}

func TestPagesOfTwoListsAreRefused(t *testing.T) {
	_, f := newFIFO(Options{}, FIFOOptions{})
	require.NoError(t, f.BeginReplace("expired", "", "1"))
	require.NoError(t, f.ReplacePage(nil, "9"))
	require.ErrorContains(t, f.ReplacePage(nil, "10"), `"9" and "10"`)
	require.ErrorContains(t, f.EndReplace("10"), `"9" and "10"`)
	require.NoError(t, f.EndReplace("9"))
}

func TestWatchEventsMustWaitForTheEndOfAList(t *testing.T) {
	q, f := newFIFO(Options{}, FIFOOptions{})
	require.NoError(t, f.BeginReplace("expired", "", "1"))
	require.ErrorIs(t, f.Add(obj("a", "1", "10")), errReplacing)
	require.ErrorIs(t, f.Update(obj("a", "1", "10")), errReplacing)
	require.ErrorIs(t, f.Delete(obj("a", "1", "10")), errReplacing)
	require.ErrorIs(t, f.Bookmark("10"), errReplacing)
	f.AbortReplace()
	require.Zero(t, q.Stats().Entries)
	require.NoError(t, f.Add(obj("a", "1", "10")))
}

func TestTheFirstOfTwoItemsWithOneKeyIsKeptAndTheOtherIsReported(t *testing.T) {
	q, f := newFIFO(Options{}, FIFOOptions{})
	require.NoError(t, f.BeginReplace("first_list", "detail", ""))
	require.NoError(t, f.ReplacePage([]any{obj("a", "1", "1"), obj("a", "2", "2"), obj("b", "3", "3")}, "9"))
	require.NoError(t, f.ReplacePage([]any{obj("b", "3", "3")}, "9"))
	require.NoError(t, f.EndReplace("9"))
	entries := next(t, q)
	require.Equal(t, []string{"list Sync a/1@1=body-1 >", "list Sync b/3@3=body-3 >", "replaced first_list ..9 +2 ~0 -0 =0 >9"}, describe(entries))
	require.Equal(t, "detail; 2 items repeat a key of the same list and were left out: a, b", entries[2].Marker.Detail)

	many := []any{}
	for i := range 2 * maxNamed {
		many = append(many, obj(strconv.Itoa(i/2%maxNamed), "u", "1"), obj("x", "u", "1"))
	}
	require.NoError(t, takeIn(f, "expired", "9", "10", many))
	entries = next(t, q)
	detail := entries[len(entries)-1].Marker.Detail
	require.True(t, strings.HasSuffix(detail, ", …"), detail)
	require.Len(t, strings.Split(detail, ", "), maxNamed+1)
}

func TestAPageWithABadObjectIsRefusedAsAWhole(t *testing.T) {
	boom := errors.New("boom")
	q, f := newFIFO(Options{}, FIFOOptions{Transformer: func(o any) (any, error) {
		if o.(*object).name == "bad" {
			return nil, boom
		}
		return o, nil
	}})
	require.NoError(t, f.BeginReplace("first_list", "", ""))
	require.ErrorIs(t, f.ReplacePage([]any{obj("a", "1", "1"), obj("bad", "2", "2")}, "9"), boom)
	require.ErrorIs(t, f.Replace([]any{obj("bad", "2", "2")}, "9"), boom)
	require.Zero(t, q.Stats().Entries)
	require.ErrorIs(t, f.EndReplace("9"), errNotReplacing, "a Replace that fails leaves no list open")
	require.False(t, f.HasSynced())
}

func TestAnUnreadableKnownStateStopsTheList(t *testing.T) {
	down := errors.New("down")
	k := knowing(obj("a", "1", "1"))
	q, f := newFIFO(Options{}, FIFOOptions{KnownObjects: k})
	require.NoError(t, f.BeginReplace("expired", "", "1"))
	k.err = down
	require.ErrorIs(t, f.ReplacePage([]any{obj("a", "1", "2")}, "9"), down)
	require.ErrorIs(t, f.EndReplace("9"), down)
	require.ErrorIs(t, f.Resync(), down)
	require.Zero(t, q.Stats().Entries)
	k.err = nil
	require.NoError(t, f.EndReplace("9"), "a failed call may be repeated")
	require.Equal(t, []string{"inferred Deleted {a a/1@1=body-1} >", "replaced expired 1..9 +0 ~0 -1 =0 >9"}, describe(next(t, q)))
}

func TestWithoutDigestsTheResourceVersionDecides(t *testing.T) {
	type bare struct{ identified }
	at := func(uid, rv string) any { return bare{obj("a", uid, rv)} }
	require.Equal(t, same, compare(at("1", "1"), at("1", "1")))
	require.Equal(t, same, compare(at("1", "1"), obj("a", "1", "1")))
	require.Equal(t, changed, compare(at("1", "1"), at("1", "2")))
	require.Equal(t, recreated, compare(at("1", "1"), at("2", "1")))
	require.Equal(t, changed, compare(at("1", ""), at("1", "")))
	require.Equal(t, changed, compare("no identity", at("1", "1")))
	require.Equal(t, changed, compare("no identity", "no identity"))
	require.Equal(t, same, compare(obj("a", "", ""), obj("a", "", "")), "equal content without a version")
	require.Equal(t, changed, compare(&object{uid: "1", body: "x"}, &object{uid: "1", body: "y"}))
}

func TestAMarkerSaysSinceWhenTheStreamWasIncomplete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, f := newFIFO(Options{}, FIFOOptions{})
		start := time.Now()
		require.NoError(t, f.Add(obj("a", "1", "5")))
		elapse(time.Second)
		require.NoError(t, takeIn(f, "expired", "5", "9", []any{obj("a", "1", "5")}))
		m := next(t, q)[1].Marker
		require.Equal(t, start, m.FromTime)
		require.Equal(t, "5", m.FromRV)
	})
}

func TestAPlainReplaceDistinguishesAFirstListFromALaterOne(t *testing.T) {
	q, f := newFIFO(Options{}, FIFOOptions{})
	require.NoError(t, f.Replace([]any{obj("a", "1", "1")}, "2"))
	require.NoError(t, f.Replace([]any{obj("a", "1", "3")}, "4"))
	require.Equal(t, []string{
		"list Sync a/1@1=body-1 >", "replaced first_list ..2 +1 ~0 -0 =0 >2",
		"relist Sync a/1@3=body-3 >", "replaced relist 2..4 +0 ~1 -0 =0 >4",
	}, describe(next(t, q)))
}

func TestANewFIFOSeesTheHeldEntriesOfItsStream(t *testing.T) {
	q := New(Options{})
	o := FIFOOptions{Stream: "pods", KeyFunction: nameOf}
	f := q.FIFO(o)
	require.NoError(t, f.Add(obj("a", "1", "1")))
	require.NoError(t, f.BeginReplace("expired", "", "1"))
	f.Close()
	require.Nil(t, f.stream.latestByKey)
	f = q.FIFO(o)
	require.NoError(t, takeIn(f, "first_list", "", "2", []any{obj("a", "1", "1")}))
	entries := next(t, q)
	require.Equal(t, []string{"watch Added a/1@1=body-1 >1", "replaced first_list ..2 +0 ~0 -0 =1 >2"}, describe(entries))
	f.Close()
	require.Len(t, q.backlog.streams, 1)
	q.Done(2)
	require.Empty(t, q.backlog.streams, "the queue keeps nothing of a stream that is closed and empty")
}

// committing is a known state. Its entries are committed and removed just after its keys were listed.
type committing struct {
	*known
	then func()
}

func (c committing) ListKeys() []string {
	defer c.then()
	return c.known.ListKeys()
}

func TestAListSeesEntriesThatAreCommittedWhileItEnds(t *testing.T) {
	k := knowing()
	var q *Queue
	q, f := newFIFO(Options{}, FIFOOptions{KnownObjects: committing{k, func() {
		entries := next(t, q)
		k.commit(entries...)
		q.Done(len(entries))
	}}})
	require.NoError(t, f.Add(obj("a", "1", "1")))
	require.NoError(t, takeIn(f, "expired", "1", "9"))
	require.Equal(t, []string{"inferred Deleted {a a/1@1=body-1} >", "replaced expired 1..9 +0 ~0 -1 =0 >9"}, describe(next(t, q)))
}

func TestAStreamIsVacantWhenNoObjectIsAliveAfterItsEntries(t *testing.T) {
	_, f := newFIFO(Options{}, FIFOOptions{KnownObjects: knowing()})
	require.True(t, f.Tail().Vacant())
	require.NoError(t, f.Add(obj("a", "1", "1")))
	require.False(t, f.Tail().Vacant(), "it is held and not known yet")
	require.NoError(t, f.Delete(obj("a", "1", "2")))
	require.True(t, f.Tail().Vacant())

	_, f = newFIFO(Options{}, FIFOOptions{KnownObjects: knowing(obj("a", "1", "1"))})
	require.False(t, f.Tail().Vacant())
	require.NoError(t, f.Delete(obj("a", "1", "2")))
	require.True(t, f.Tail().Vacant(), "its end is held, and it is known still")
}
