package recorder

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/deltafifo"
	"github.com/kuberewind/kuberewind/internal/filter"
	"github.com/kuberewind/kuberewind/internal/lifecycle"
	"github.com/kuberewind/kuberewind/kube"
)

var endedThings = kube.Resource{Name: "things", Kind: "Thing", Version: "v1", Namespaced: true, DefinitionUID: "u"}

// half makes a stream of which a part is on disk, since the database is slow.
func half(t *testing.T) (*swept, *stream, *handler) {
	t.Helper()
	s := newSwept(t)
	s.spill(t.TempDir())
	st, things := s.follow("things", "Thing")
	require.NoError(t, things.Replace([]any{served(t, "Thing", "a", 11)}, "11"))
	s.pump()
	for rv := 12; rv < 17; rv++ {
		require.NoError(t, things.Update(served(t, "Thing", "a", rv)))
	}
	require.Less(t, s.queue.Stats().Entries, 5)
	things.Close()
	return s, st, newHandler(s.recorder, nil)
}

func TestAnEndWaitsForSpooledEntriesWithoutBlocking(t *testing.T) {
	s, st, h := half(t)
	require.NoError(t, h.unserved(t.Context(), endedThings, "99"))
	s.pump()
	<-st.ending.done
	s.pump()
	deltas, _ := s.told(7)
	require.Equal(t, []string{"Deleted inferred things a"}, deltas)
	require.Equal(t, "99", st.next(nil).At)
}

func TestAnEndIsCancelledIfTheResourceIsServedAgain(t *testing.T) {
	s, st, h := half(t)
	require.NoError(t, h.unserved(t.Context(), endedThings, "99"))
	st.ending.stop()
	require.Empty(t, st.ended)
	s.pump()
	deltas, _ := s.told(7)
	require.Empty(t, deltas)
}

// Another definition came and went while the resource was not followed, and the next came before that was on record.
func TestAStreamWhoseEndWasCancelledIsListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, s, _ := aboutToEnd(t)
		r.queue, s.run, s.ended = deltafifo.New(deltafifo.Options{MaxBytes: 1}), nil, "4"
		ctx, cancel := context.WithCancel(t.Context())
		failed := make(chan error, 1)
		go func() { failed <- r.end(ctx, s, nil, endedThings, "9") }()
		synctest.Wait() // The queue is full of the gap.
		cancel()
		require.Error(t, <-failed)
		require.Empty(t, s.ended)
		require.Equal(t, lifecycle.Decision{Do: lifecycle.List, Reason: lifecycle.Reason{Cause: delta.CauseNotFound}}, s.next(nil))
	})
}

// Nobody followed it in the new history.
func TestAnEndBeforeTheRecordedEndIsFromAnotherHistory(t *testing.T) {
	r, s, _ := aboutToEnd(t)
	s.run, s.ended = nil, "4"
	require.NoError(t, r.end(t.Context(), s, nil, endedThings, "4"))
	require.Zero(t, r.queue.Stats().Entries, "it is on record")
	require.NoError(t, r.end(t.Context(), s, nil, endedThings, "2"))
	r.queue.Close()
	entries, err := r.queue.Next(t.Context(), 10, 1<<20, 0)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	require.Equal(t, delta.Interrupted, entries[0].Marker.Kind)
}

// Where the definitions may not be read, only that the resource is gone is known, and nothing of its objects.
func TestAnEndOfUnknownTimeIsAnOpenGapAndEndsNoLife(t *testing.T) {
	s, st, h := half(t)
	require.NoError(t, h.unserved(t.Context(), endedThings, ""))
	s.pump()
	<-st.ending.done
	s.pump()
	deltas, _ := s.told(7)
	require.Empty(t, deltas)
	var cause string
	var open, alive bool
	require.NoError(t, s.conn.QueryRow(t.Context(), `SELECT cause, open FROM kuberewind.gaps WHERE resource = 'things' AND cause <> 'first_list'`).Scan(&cause, &open))
	require.NoError(t, s.conn.QueryRow(t.Context(), `SELECT bool_and(NOT deleted) FROM kuberewind.objects WHERE resource = 'things'`).Scan(&alive))
	require.Equal(t, "not_found", cause)
	require.True(t, open)
	require.True(t, alive)

	// Said once: the next recorder finds it open.
	require.NoError(t, h.unserved(t.Context(), endedThings, ""))
	<-st.ending.done
	s.pump()
	var n int
	require.NoError(t, s.conn.QueryRow(t.Context(), `SELECT count(*) FROM kuberewind.gaps WHERE cause = 'not_found'`).Scan(&n))
	require.Equal(t, 1, n)
}

func TestADefinitionThatTheOldFilterExcludedIsNotUnfollowed(t *testing.T) {
	s := newSwept(t)
	st, _, err := s.recorder.streamOf(t.Context(), kube.Resource{Group: "apiextensions.k8s.io", Name: "customresourcedefinitions", Kind: "CustomResourceDefinition", Version: "v1"}, "")
	require.NoError(t, err)
	definitions := s.queue.FIFO(deltafifo.FIFOOptions{Stream: st, KnownObjects: st.record.Known()})
	for rv, name := range map[int]string{11: "things.example.com", 12: "hidden.example.com"} {
		o, err := kube.Restore(fmt.Appendf(nil, `{"apiVersion":"v1","kind":"CustomResourceDefinition","metadata":{"name":%q,"resourceVersion":"%d","uid":"of %[1]s"}}`, name, rv))
		require.NoError(t, err)
		require.NoError(t, definitions.Add(o))
	}
	s.pump()
	require.NoError(t, s.recorder.loadUnfollowed(t.Context()))
	require.Equal(t, map[types.UID]string{"of things.example.com": "11", "of hidden.example.com": "12"}, s.recorder.unfollowed)
	s.recorder.filterBefore, err = filter.New(nil, []string{"hidden.example.com"})
	require.NoError(t, err)
	require.NoError(t, s.recorder.loadUnfollowed(t.Context()))
	require.Equal(t, map[types.UID]string{"of things.example.com": "11"}, s.recorder.unfollowed)
}

// The database was away for as long as it was defined.
func TestAResourceThatCameAndWentUnfollowedIsAGap(t *testing.T) {
	s := newSwept(t)
	h := newHandler(s.recorder, nil)
	require.NoError(t, h.unserved(t.Context(), kube.Resource{Name: "services", Version: "v1", Kind: "Service"}, "99"), "it has no definition")
	require.NoError(t, h.unserved(t.Context(), endedThings, "99"))
	<-s.recorder.openStream(endedThings).ending.done
	s.pump()
	require.Equal(t, []string{"things first_list  99"}, s.texts(`SELECT concat_ws(' ', resource, cause, coalesce(from_rv, ''), to_rv) FROM kuberewind.gaps`))
}

func TestAStreamIsCompleteIfItReachesTheEndOfAllEarlierDefinitions(t *testing.T) {
	s := newSwept(t)
	things := kube.Resource{Group: "example.com", Version: "v1", Name: "things", Kind: "Thing", DefinitionUID: "u3"}
	follow := func(r kube.Resource) (*stream, *deltafifo.FIFO) {
		st, _, err := s.recorder.streamOf(t.Context(), r, "")
		require.NoError(t, err)
		return st, s.queue.FIFO(deltafifo.FIFOOptions{Stream: st, KnownObjects: st.record.Known(), Rules: st.rules.String()})
	}
	s.leaveOut("")
	_, definitions := follow(kube.Resource{Group: "apiextensions.k8s.io", Version: "v1", Name: "customresourcedefinitions", Kind: "CustomResourceDefinition"})
	st, fifo := follow(things)
	defined := func(uid types.UID, created, deleted int) {
		for i, do := range []func(any) error{definitions.Add, definitions.Delete} {
			o := served(t, "CustomResourceDefinition", "things.example.com", []int{created, deleted}[i])
			o.Namespace, o.UID = "", uid
			require.NoError(t, do(o))
		}
		s.pump()
	}
	earlier := func(since string) lifecycle.Earlier {
		e, err := s.recorder.earlier(t.Context(), st, things, since)
		require.NoError(t, err)
		return e
	}
	s.recorder.definitions = "10"
	require.NoError(t, definitions.Replace(nil, "10"))
	s.pump()
	s.at = s.at.Add(time.Second)
	require.NoError(t, fifo.Replace(nil, "15"))
	s.pump()
	require.Equal(t, lifecycle.Partial, earlier("40"), "nothing is known of it, as where definitions are not recorded")
	defined("u1", 11, 14)
	require.NoError(t, definitions.Bookmark("40"))
	s.pump()
	require.Equal(t, lifecycle.Whole, earlier("40"))
	require.Equal(t, lifecycle.Behind, earlier("41"), "there may have been another since")
	require.NoError(t, definitions.Interrupted("unreachable", ""))
	s.pump()
	require.Equal(t, lifecycle.Behind, earlier("41"), "that may turn out to be no gap")
	require.NoError(t, definitions.Resumed())
	s.pump()
	defined("u2", 41, 45)
	require.Equal(t, lifecycle.Partial, earlier("45"), "nobody has followed that one")
	require.Equal(t, lifecycle.Whole, earlier("42"), "a watch from there shows it")
	s.recorder.definitions = "41"
	require.Equal(t, lifecycle.Partial, earlier("42"), "it was there before, and this may be any time of it")
	require.NoError(t, fifo.Replace(nil, "46"))
	s.pump()
	require.Equal(t, lifecycle.Whole, earlier("45"))
	things.DefinitionUID = "u4"
	begins := served(t, "CustomResourceDefinition", "things.example.com", 47)
	begins.Namespace, begins.UID = "", "u3"
	require.NoError(t, definitions.Add(begins))
	s.pump()
	require.Equal(t, lifecycle.Behind, earlier("46"), "there is another now, so that one has ended")
	ends := served(t, "CustomResourceDefinition", "things.example.com", 48)
	ends.Namespace, ends.UID = "", "u3"
	require.NoError(t, definitions.Delete(ends))
	s.pump()
	require.Equal(t, lifecycle.Whole, earlier("47"))
	s.leaveOut("customresourcedefinitions.apiextensions.k8s.io")
	require.Equal(t, lifecycle.Partial, earlier("45"), "some may not be on record")
}

func TestAStreamWaitsAMinuteForTheRecordOfItsDefinitions(t *testing.T) {
	st, things := &stream{}, kube.Resource{DefinitionUID: "u3"}
	require.ErrorIs(t, st.definedLater(things), errDefinedBefore)
	st.waits.since = st.waits.since.Add(-definedPatience)
	require.NoError(t, st.definedLater(things), "the record of definitions is too far behind")
	things.DefinitionUID = "u4"
	require.ErrorIs(t, st.definedLater(things), errDefinedBefore, "that was another definition's patience")
}
