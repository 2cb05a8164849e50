package deltafifo

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/cache"

	"github.com/kuberewind/kuberewind/delta"
)

func TestAnObjectThatCannotBeTransformedOrKeyedIsRejectedToTheCaller(t *testing.T) {
	boom := errors.New("boom")
	q, f := newFIFO(Options{}, FIFOOptions{Transformer: func(o any) (any, error) {
		if o == "bad" {
			return nil, boom
		}
		return o, nil
	}})
	require.ErrorIs(t, f.Add("bad"), boom)
	err := f.Update("secret")
	require.ErrorIs(t, err, errNoKey)
	require.NotContains(t, err.Error(), "secret", "an object must not get into a log by way of an error")
	require.Zero(t, q.Stats().Entries)
	require.False(t, f.HasSynced())
	require.NotNil(t, f.Transformer())
}

func TestATombstoneIsKeptAsGivenAndHasNoPosition(t *testing.T) {
	q, f := newFIFO(Options{}, FIFOOptions{Transformer: func(any) (any, error) { return nil, errors.New("not for tombstones") }})
	tombstone := cache.DeletedFinalStateUnknown{Key: "a", Obj: obj("a", "1", "1")}
	require.NoError(t, f.Delete(tombstone))
	e := next(t, q)[0]
	require.Equal(t, cache.Delta{Type: cache.Deleted, Object: tombstone}, e.Delta)
	require.Empty(t, e.Position)
	require.Equal(t, delta.SourceWatch, e.Source)
}

func TestTheDeletionOfAnUnknownObjectIsKept(t *testing.T) {
	q, f := newFIFO(Options{}, FIFOOptions{KnownObjects: knowing()})
	require.NoError(t, f.Delete(obj("a", "1", "1")))
	require.NoError(t, f.Delete(obj("a", "1", "1")))
	require.Len(t, next(t, q), 2)
}

func TestAnInterruptionIsReportedOnce(t *testing.T) {
	q, f := newFIFO(Options{}, FIFOOptions{})
	require.NoError(t, f.Add(obj("a", "1", "5")))
	require.NoError(t, f.Interrupted("forbidden", "first"))
	require.NoError(t, f.Interrupted("forbidden", "again"))
	require.NoError(t, f.Interrupted("not_found", ""))
	require.NoError(t, f.Resumed())
	require.NoError(t, f.Resumed())
	require.NoError(t, f.Interrupted("not_found", ""))
	require.NoError(t, takeIn(f, "forbidden", "5", "9", []any{obj("a", "1", "5")}))
	require.NoError(t, f.Resumed(), "a list has shown already that the stream proceeds")
	entries := next(t, q)
	require.Equal(t, []string{
		"watch Added a/1@5=body-5 >5",
		"interrupted forbidden 5.. +0 ~0 -0 =0 >", "interrupted not_found 5.. +0 ~0 -0 =0 >", "resumed not_found 5.. +0 ~0 -0 =0 >",
		"interrupted not_found 5.. +0 ~0 -0 =0 >", "replaced forbidden 5..9 +0 ~0 -0 =1 >9",
	}, describe(entries))
	require.Equal(t, "first", entries[1].Marker.Detail)
	require.Equal(t, entries[0].Observed, entries[1].Marker.FromTime)
}

func TestEachSetOfObjectsThatCannotBeDecodedIsReported(t *testing.T) {
	q, f := newFIFO(Options{}, FIFOOptions{})
	require.NoError(t, f.Add(obj("a", "1", "5")))
	for _, detail := range []string{"first page", "first page", "second page"} {
		require.NoError(t, f.Interrupted(delta.CauseUndecodable, detail))
	}
	entries := next(t, q)
	require.Len(t, entries, 3)
	require.Equal(t, "first page", entries[1].Marker.Detail)
	require.Equal(t, "second page", entries[2].Marker.Detail)
}

func TestALateInterruptionBeginsAtTheLastCompletePosition(t *testing.T) {
	q, f := newFIFO(Options{}, FIFOOptions{})
	require.NoError(t, f.Add(obj("a", "1", "5")))
	require.NoError(t, f.Add(obj("b", "2", "7")))
	entries := next(t, q)
	missed := entries[1].Observed.Add(-time.Nanosecond)
	require.NoError(t, f.InterruptedSince("history_reversed", "", Begin{"6", missed}))
	require.NoError(t, f.InterruptedSince("forbidden", "", Begin{"8", entries[1].Observed}))
	require.NoError(t, f.InterruptedSince("unreachable", "", Begin{"", missed}))
	at := entries[1].Observed
	entries = next(t, q)
	require.Equal(t, []string{
		"interrupted history_reversed 6.. +0 ~0 -0 =0 >", "interrupted forbidden 7.. +0 ~0 -0 =0 >", "interrupted unreachable 7.. +0 ~0 -0 =0 >",
	}, describe(entries[len(entries)-3:]))
	require.Equal(t, missed, entries[len(entries)-3].Marker.FromTime)
	require.Equal(t, at, entries[len(entries)-2].Marker.FromTime)
	require.Equal(t, missed, entries[len(entries)-1].Marker.FromTime, "whatever its resource version means elsewhere")
}

func TestStreamsAreInterruptedTogetherByOneEntry(t *testing.T) {
	q, f := newFIFO(Options{}, FIFOOptions{Stream: "a"})
	other := q.FIFO(FIFOOptions{Stream: "b", KeyFunction: nameOf})
	require.NoError(t, f.Add(obj("a", "1", "5")))
	require.NoError(t, other.Add(obj("b", "2", "7")))
	before := next(t, q)
	since := before[0].Observed.Add(-time.Second)
	require.NoError(t, q.InterruptTogether(t.Context(), "history_reversed", "proof", []Interruption{{"a", Begin{}}, {"b", Begin{"6", since}}, {"c", Begin{"8", since}}}))
	require.NoError(t, q.InterruptTogether(t.Context(), "history_reversed", "proof", nil), "there is no stream to interrupt")
	entries := next(t, q)
	require.Len(t, entries, 1)
	e := entries[0]
	require.Equal(t, "a", e.Stream)
	require.Equal(t, delta.Marker{Kind: delta.Interrupted, Cause: "history_reversed", Detail: "proof", FromRV: "5", FromTime: before[0].Observed}, *e.Marker)
	require.Equal(t, []OtherStream{{"b", "6", since}, {"c", "8", since}}, e.Others)
}

func TestDetachGetsTheValueOfAnEntryThatIsNotEnqueued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var returned []any
		_, f := newFIFO(Options{MaxBytes: 1}, FIFOOptions{Attach: func() any { return "decision" }, Detach: func(attached any) { returned = append(returned, attached) }})
		require.NoError(t, f.Skip("1"))
		result := call(func() error { return f.Skip("2") })
		synctest.Wait()
		require.Empty(t, returned)
		f.Close()
		require.ErrorIs(t, <-result, cache.ErrFIFOClosed)
		require.Equal(t, []any{"decision"}, returned)
	})
}

func TestANewFIFODoesNotKnowEarlierInterruptions(t *testing.T) {
	q, f := newFIFO(Options{}, FIFOOptions{})
	require.NoError(t, f.Resumed())
	require.NoError(t, f.Resumed())
	require.Equal(t, []string{"resumed  .. +0 ~0 -0 =0 >"}, describe(next(t, q)))
}

// summary is a known value that cannot be stored as a whole object.
type summary struct {
	*object
	whole any
	err   error
}

func (s summary) Object() (any, error) { return s.whole, s.err }

func TestAResyncMakesKeyframesOfKnownObjectsThatAreNotHeld(t *testing.T) {
	k := knowing(obj("a", "1", "1"), obj("b", "2", "2"))
	k.objs["c"] = summary{object: obj("c", "3", "3"), whole: obj("c", "3", "3")}
	q, f := newFIFO(Options{}, FIFOOptions{KnownObjects: k, Transformer: func(o any) (any, error) { return o, nil }})
	require.NoError(t, f.Update(obj("b", "2", "4")))
	require.NoError(t, f.Resync())
	require.Equal(t, []string{
		"watch Updated b/2@4=body-4 >4", "resync Sync a/1@1=body-1 >", "resync Sync c/3@3=body-3 >",
	}, describe(next(t, q)))
	require.NoError(t, f.Resync())
	require.Empty(t, next(t, q), "handed-out entries are held")
	require.Nil(t, f.stream.latestByKey)
	q.Done(3)
	require.NoError(t, f.Resync())
	require.Len(t, next(t, q), 3)
}

func TestAResyncSkipsObjectsThatNeedNoKeyframe(t *testing.T) {
	q, f := newFIFO(Options{}, FIFOOptions{
		KnownObjects: knowing(obj("a", "1", "1"), obj("b", "2", "2")),
		ResyncNeeded: func(known any) bool { return known.(*object).name == "b" },
	})
	require.NoError(t, f.Resync())
	require.Equal(t, []string{"resync Sync b/2@2=body-2 >"}, describe(next(t, q)))
}

func TestAResyncWithNothingKnownDoesNothing(t *testing.T) {
	q, f := newFIFO(Options{}, FIFOOptions{})
	require.NoError(t, f.Resync())
	require.Zero(t, q.Stats().Entries)
}

func TestAResyncStopsAtAnObjectThatItCannotGet(t *testing.T) {
	boom := errors.New("boom")
	k := knowing()
	k.objs["a"] = summary{object: obj("a", "1", "1"), err: boom}
	_, f := newFIFO(Options{}, FIFOOptions{KnownObjects: k})
	require.ErrorIs(t, f.Resync(), boom)
}

func TestAResyncDuringAListDoesNotDisturbIt(t *testing.T) {
	q, f := newFIFO(Options{}, FIFOOptions{KnownObjects: knowing(obj("a", "1", "1"), obj("b", "2", "2"))})
	require.NoError(t, f.Add(obj("c", "3", "2")))
	require.NoError(t, f.BeginReplace("expired", "", "2"))
	require.NoError(t, f.ReplacePage([]any{obj("a", "1", "3")}, "9"))
	require.NoError(t, f.Resync())
	require.NoError(t, f.EndReplace("9"))
	require.Equal(t, []string{
		"watch Added c/3@2=body-2 >2", "relist Sync a/1@3=body-3 >", "resync Sync b/2@2=body-2 >", "inferred Deleted {b b/2@2=body-2} >",
		"inferred Deleted {c c/3@2=body-2} >", "replaced expired 2..9 +0 ~1 -2 =0 >9",
	}, describe(next(t, q)))
}

func TestAFIFOHasSyncedWhenItsFirstListIsDone(t *testing.T) {
	q, f := newFIFO(Options{}, FIFOOptions{})
	require.NoError(t, f.BeginReplace("first_list", "", ""))
	require.NoError(t, f.ReplacePage([]any{obj("a", "1", "1"), obj("b", "2", "2")}, "9"))
	next(t, q)
	q.Done(1)
	require.False(t, f.HasSynced())
	require.NoError(t, f.EndReplace("9"))
	require.NoError(t, f.Add(obj("c", "3", "10")))
	require.False(t, f.HasSynced())
	q.Done(1)
	require.True(t, f.HasSynced())
	<-f.HasSyncedChecker().Done()
	require.Equal(t, "deltafifo", f.HasSyncedChecker().Name())
}

func TestAnAbortedListDoesNotCountAsTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, f := newFIFO(Options{}, FIFOOptions{Name: "pods"})
		require.NoError(t, f.BeginReplace("first_list", "", ""))
		require.NoError(t, f.ReplacePage([]any{obj("a", "1", "1")}, "9"))
		f.AbortReplace()
		next(t, q)
		q.Done(1)
		require.False(t, f.HasSynced())
		require.NoError(t, takeIn(f, "first_list", "", "10"))
		require.Equal(t, "pods", f.HasSyncedChecker().Name())
	})
}

// watched calls onGet before each look-up.
type watched struct {
	*known
	onGet func()
}

func (w watched) GetByKey(key string) (any, bool, error) {
	w.onGet()
	return w.known.GetByKey(key)
}

func TestNothingEntersTheStreamBetweenALookUpAndItsKeyframe(t *testing.T) {
	var f *FIFO
	looks := 0
	_, f = newFIFO(Options{}, FIFOOptions{KnownObjects: watched{knowing(obj("a", "1", "1")), func() {
		looks++
		require.False(t, f.stream.feed.TryLock(), "a newer version must not come before the keyframe of an older one")
	}}})
	require.NoError(t, f.Resync())
	require.NoError(t, takeIn(f, "expired", "", "9", []any{obj("a", "1", "2")}))
	require.Equal(t, 1, looks, "a held object is not looked up")
}

// A stream may lag behind the others of its etcd. It was complete up to its own position, not up to theirs.
func TestAnInterruptionIsNotBeyondThePosition(t *testing.T) {
	q, f := newFIFO(Options{}, FIFOOptions{})
	require.NoError(t, f.Add(obj("a", "1", "5")))
	entries := next(t, q)
	since := entries[0].Observed.Add(-time.Second)
	require.NoError(t, f.InterruptedSince("history_reversed", "", Begin{"58", since}))
	entries = next(t, q)
	marker := entries[len(entries)-1].Marker
	require.Equal(t, "5", marker.FromRV)
	require.Equal(t, since, marker.FromTime)
}

// The stream goes on from the end of a record. Its newest recorded version is not complete.
func TestAnInterruptionMayBeginBeforeAnythingWasEnqueued(t *testing.T) {
	q, f := newFIFO(Options{}, FIFOOptions{})
	since := time.Now().Add(-time.Minute)
	require.NoError(t, f.InterruptedSince("history_reversed", "", Begin{"58", since}))
	marker := next(t, q)[0].Marker
	require.Equal(t, "58", marker.FromRV)
	require.Equal(t, since, marker.FromTime)
}
