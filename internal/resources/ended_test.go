package resources

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kuberewind/kuberewind/deltafifo"
	"github.com/kuberewind/kuberewind/internal/filter"
	"github.com/kuberewind/kuberewind/internal/lifecycle"
	"github.com/kuberewind/kuberewind/internal/pgtest"
	"github.com/kuberewind/kuberewind/internal/stream"
	"github.com/kuberewind/kuberewind/internal/streamtest"
	"github.com/kuberewind/kuberewind/kube"
)

var endedThings = kube.Resource{Name: "things", Kind: "Thing", Version: "v1", Namespaced: true, DefinitionUID: "u"}

// recording is a streamtest.Recording with handlers.
type recording struct{ *streamtest.Recording }

func newRecording(t *testing.T) recording {
	t.Helper()
	return recording{streamtest.New(t)}
}

// feed returns the FIFO of a resource.
func (s recording) feed(resource kube.Resource) *deltafifo.FIFO {
	s.T.Helper()
	return s.Queue.FIFO(s.OpenStream(resource).FIFOOptions())
}

// handler returns a Handler for the streams of the recording. It has no client, so it runs no stream.
func (s recording) handler() *Handler {
	log := slog.New(slog.DiscardHandler)
	return NewHandler(Options{
		Streams: s.Streams, Prior: s.Sink.Prior(), Rules: s.Options.Rules, Log: log,
		Launcher: stream.NewLauncher(stream.Launcher{Queue: s.Queue, Lists: stream.NewGate(1), Now: s.Clock.Now, Log: log}),
	})
}

func TestMain(m *testing.M) { pgtest.Main(m) }

// openRun is a run whose watch stays open.
type openRun struct{ halted chan struct{} }

func (openRun) Gone() <-chan struct{} { return nil }
func (r openRun) Halt()               { close(r.halted) }

// If only the APIService of a resource is deleted, an open watch goes on.
func TestTheRunOfADroppedResourceIsHaltedEvenIfItsWatchIsOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, run := time.Now(), openRun{make(chan struct{})}
		require.True(t, haltAtEnd(t.Context(), run))
		<-run.halted
		require.Equal(t, retireAfter, time.Since(began))

		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.False(t, haltAtEnd(ctx, openRun{}), "the resource is served again")
	})
}

// half makes a stream with some entries on disk, because the database is slow.
func half(t *testing.T) (recording, *stream.Stream, *Handler) {
	t.Helper()
	s := newRecording(t)
	s.Spill(t.TempDir())
	st, things := s.Follow("things", "Thing")
	require.NoError(t, things.Replace([]any{streamtest.Served(t, "Thing", "a", 11)}, "11"))
	s.Pump()
	for rv := 12; rv < 17; rv++ {
		require.NoError(t, things.Update(streamtest.Served(t, "Thing", "a", rv)))
	}
	require.Less(t, s.Queue.Stats().Entries, 5)
	things.Close()
	return s, st, s.handler()
}

func TestAnEndWaitsForSpooledEntriesWithoutBlocking(t *testing.T) {
	s, st, h := half(t)
	require.NoError(t, h.unserved(t.Context(), endedThings, "99"))
	s.Pump()
	<-h.endings[endedThings.GroupResource()].done
	s.Pump()
	deltas, _ := s.Recorded(7)
	require.Equal(t, []string{"Deleted inferred things a"}, deltas)
	require.Equal(t, "99", st.Facts(nil).Ended)
}

func TestAnEndIsCancelledIfTheResourceIsServedAgain(t *testing.T) {
	s, st, h := half(t)
	require.NoError(t, h.unserved(t.Context(), endedThings, "99"))
	h.endings[endedThings.GroupResource()].stop()
	require.Empty(t, st.Facts(nil).Ended)
	s.Pump()
	deltas, _ := s.Recorded(7)
	require.Empty(t, deltas)
}

// If the recorder may not read the definitions, it only knows that the resource is gone, and nothing about its objects.
func TestAnEndOfUnknownTimeIsAnOpenGapAndEndsNoLife(t *testing.T) {
	s, _, h := half(t)
	require.NoError(t, h.unserved(t.Context(), endedThings, ""))
	s.Pump()
	<-h.endings[endedThings.GroupResource()].done
	s.Pump()
	deltas, _ := s.Recorded(7)
	require.Empty(t, deltas)
	var cause string
	var open, alive bool
	require.NoError(t, s.Conn.QueryRow(t.Context(), `SELECT cause, open FROM kuberewind.gaps WHERE resource = 'things' AND cause <> 'first_list'`).Scan(&cause, &open))
	require.NoError(t, s.Conn.QueryRow(t.Context(), `SELECT bool_and(NOT deleted) FROM kuberewind.objects WHERE resource = 'things'`).Scan(&alive))
	require.Equal(t, "not_found", cause)
	require.True(t, open)
	require.True(t, alive)

	// The gap is opened once: the next recorder finds it open.
	require.NoError(t, h.unserved(t.Context(), endedThings, ""))
	<-h.endings[endedThings.GroupResource()].done
	s.Pump()
	var n int
	require.NoError(t, s.Conn.QueryRow(t.Context(), `SELECT count(*) FROM kuberewind.gaps WHERE cause = 'not_found'`).Scan(&n))
	require.Equal(t, 1, n)
}

func TestADefinitionThatTheOldFilterExcludedIsNotUnfollowed(t *testing.T) {
	s := newRecording(t)
	definitions := s.feed(kube.Resource{Group: "apiextensions.k8s.io", Name: "customresourcedefinitions", Kind: "CustomResourceDefinition", Version: "v1"})
	for rv, name := range map[int]string{11: "things.example.com", 12: "hidden.example.com"} {
		o, err := kube.Restore(fmt.Appendf(nil, `{"apiVersion":"v1","kind":"CustomResourceDefinition","metadata":{"name":%q,"resourceVersion":"%d","uid":"of %[1]s"}}`, name, rv))
		require.NoError(t, err)
		require.NoError(t, definitions.Add(o))
	}
	s.Pump()
	unfollowed, err := UnfollowedDefinitions(t.Context(), s.Sink.Prior(), nil)
	require.NoError(t, err)
	require.Equal(t, map[types.UID]string{"of things.example.com": "11", "of hidden.example.com": "12"}, unfollowed)
	before, err := filter.New(nil, []string{"hidden.example.com"})
	require.NoError(t, err)
	unfollowed, err = UnfollowedDefinitions(t.Context(), s.Sink.Prior(), before)
	require.NoError(t, err)
	require.Equal(t, map[types.UID]string{"of things.example.com": "11"}, unfollowed)
}

// The database was away while the resource was defined.
func TestAResourceThatCameAndWentWithoutARecorderIsAGap(t *testing.T) {
	s := newRecording(t)
	h := s.handler()
	require.NoError(t, h.unserved(t.Context(), kube.Resource{Name: "services", Version: "v1", Kind: "Service"}, "99"), "it has no definition")
	require.NoError(t, h.unserved(t.Context(), endedThings, "99"))
	<-h.endings[endedThings.GroupResource()].done
	s.Pump()
	require.Equal(t, []string{"things first_list  99"}, s.Texts(`SELECT concat_ws(' ', resource, cause, coalesce(from_rv, ''), to_rv) FROM kuberewind.gaps`))
}

func TestAStreamIsCompleteIfItReachesTheEndOfAllEarlierDefinitions(t *testing.T) {
	s := newRecording(t)
	things := kube.Resource{Group: "example.com", Version: "v1", Name: "things", Kind: "Thing", DefinitionUID: "u3"}
	definitions := s.feed(kube.Resource{Group: "apiextensions.k8s.io", Version: "v1", Name: "customresourcedefinitions", Kind: "CustomResourceDefinition"})
	fifo := s.feed(things)
	st, h := s.Streams.Get(things), s.handler()
	defined := func(uid types.UID, created, deleted int) {
		for i, do := range []func(any) error{definitions.Add, definitions.Delete} {
			o := streamtest.Served(t, "CustomResourceDefinition", "things.example.com", []int{created, deleted}[i])
			o.Namespace, o.UID = "", uid
			require.NoError(t, do(o))
		}
		s.Pump()
	}
	earlier := func(since string) lifecycle.Earlier {
		e, err := h.earlier(t.Context(), things, since, st.Recorded().Position)
		require.NoError(t, err)
		return e
	}
	h.options.Definitions = "10"
	require.NoError(t, definitions.Replace(nil, "10"))
	s.Pump()
	s.At = s.At.Add(time.Second)
	require.NoError(t, fifo.Replace(nil, "15"))
	s.Pump()
	require.Equal(t, lifecycle.Partial, earlier("40"), "the record has no definition of it, as if definitions were not recorded")
	defined("u1", 11, 14)
	require.NoError(t, definitions.Bookmark("40"))
	s.Pump()
	require.Equal(t, lifecycle.Whole, earlier("40"))
	require.Equal(t, lifecycle.Behind, earlier("41"), "another definition may have begun since")
	require.NoError(t, definitions.Interrupted("unreachable", ""))
	s.Pump()
	require.Equal(t, lifecycle.Behind, earlier("41"), "the interruption may turn out to be no gap")
	require.NoError(t, definitions.Resumed())
	s.Pump()
	defined("u2", 41, 45)
	require.Equal(t, lifecycle.Partial, earlier("45"), "no recorder has followed that definition")
	require.Equal(t, lifecycle.Whole, earlier("42"), "a watch from there shows it")
	h.options.Definitions = "41"
	require.Equal(t, lifecycle.Partial, earlier("42"), "the definition existed before, and the position may be any time of it")
	require.NoError(t, fifo.Replace(nil, "46"))
	s.Pump()
	require.Equal(t, lifecycle.Whole, earlier("45"))
	things.DefinitionUID = "u4"
	begins := streamtest.Served(t, "CustomResourceDefinition", "things.example.com", 47)
	begins.Namespace, begins.UID = "", "u3"
	require.NoError(t, definitions.Add(begins))
	s.Pump()
	require.Equal(t, lifecycle.Behind, earlier("46"), "there is another definition now, so that one has ended")
	ends := streamtest.Served(t, "CustomResourceDefinition", "things.example.com", 48)
	ends.Namespace, ends.UID = "", "u3"
	require.NoError(t, definitions.Delete(ends))
	s.Pump()
	require.Equal(t, lifecycle.Whole, earlier("47"))
	var err error
	h.options.Rules, err = filter.New(nil, []string{"customresourcedefinitions.apiextensions.k8s.io"})
	require.NoError(t, err)
	require.Equal(t, lifecycle.Partial, earlier("45"), "some definitions may not be on record")
}

func TestAStreamWaitsAMinuteForTheRecordOfItsDefinitions(t *testing.T) {
	h, things := NewHandler(Options{}), kube.Resource{DefinitionUID: "u3"}
	require.ErrorIs(t, h.definedLater(things), errDefinedBefore)
	h.waits[things.GroupResource()].since = time.Now().Add(-definedPatience)
	require.NoError(t, h.definedLater(things), "the record of definitions is too far behind")
	things.DefinitionUID = "u4"
	require.ErrorIs(t, h.definedLater(things), errDefinedBefore, "the patience of another definition does not count")
}
