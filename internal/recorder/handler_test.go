package recorder

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/deltafifo"
	"github.com/kuberewind/kuberewind/internal/filter"
	"github.com/kuberewind/kuberewind/internal/rollback"
	"github.com/kuberewind/kuberewind/kube"
	"github.com/kuberewind/kuberewind/reflector"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

func TestTheRecordOfAResourceThatEndsIsCompleteOnlyIfItWasWatchedToItsEnd(t *testing.T) {
	nothing := func(*store) {}
	for name, test := range map[string]struct {
		before func(*store)
		closed time.Duration // before the server says that it does not serve it
		ended  types.UID     // the definition of which it is told that it has ended
		at     string
		want   delta.MarkerKind
	}{
		"watched to its end":      {nothing, 0, "u1", "", delta.Resumed},
		"not watched for a while": {nothing, time.Minute, "u1", "", delta.Interrupted},
		"interrupted before": {func(st *store) { require.NoError(t, st.Interrupted(delta.CauseForbidden, "")) },
			0, "u1", "", delta.Interrupted},
		"something of it lives on": {func(st *store) { require.NoError(t, st.Add(&kube.Object{ObjectMeta: metav1.ObjectMeta{Name: "a"}})) },
			0, "u1", "", delta.Interrupted},
		"not watched, but known to have gone":       {nothing, time.Minute, "u1", "9", delta.Replaced},
		"gone before what is on record":             {nothing, time.Minute, "u1", "4", delta.Interrupted},
		"watched to its end, and then defined anew": {nothing, 0, "u2", "9", delta.Replaced},
	} {
		t.Run(name, func(t *testing.T) {
			r, s, run := aboutToEnd(t)
			st := newStore(s, run)
			test.before(st)
			run.closed.Store(time.Now().Add(-test.closed).UnixNano())
			require.NoError(t, st.Interrupted(delta.CauseNotFound, "the server could not find the requested resource"))
			run.fifo.Close()
			run.outlivedBy(kube.Resource{DefinitionUID: test.ended})
			require.NoError(t, r.end(t.Context(), s, run, kube.Resource{DefinitionUID: test.ended}, test.at))
			r.queue.Close()
			entries, err := r.queue.Next(t.Context(), 10, 1<<20, 0)
			require.NoError(t, err)
			require.Equal(t, test.want, entries[len(entries)-1].Marker.Kind)
		})
	}
}

// aboutToEnd is a stream that is about to end, without a database; its watch was closed a moment ago.
func aboutToEnd(t *testing.T) (*Recorder, *stream, *streamRun) {
	t.Helper()
	r := &Recorder{queue: deltafifo.New(deltafifo.Options{}), log: slog.New(slog.DiscardHandler)}
	all, err := filter.New(nil, nil)
	require.NoError(t, err)
	s := &stream{name: "things", record: &postgres.Stream{}, rules: all.For(kube.Resource{Name: "things"}.GroupResource()), settle: func() {}, etcd: rollback.New(rollback.Options{}).Add(rollback.Spec{Name: "things"})}
	run := &streamRun{served: kube.Resource{DefinitionUID: "u1"}, gone: make(chan struct{}), done: make(chan struct{}), stop: func(error) {}, fifo: r.queue.FIFO(deltafifo.FIFOOptions{Stream: s})}
	close(run.done)
	s.run = run
	run.reflector = reflector.NewReflectorWithOptions(&cache.ListWatch{}, nil, newStore(s, run), reflector.Options{ResourceVersion: "5"})
	run.closed.Store(time.Now().UnixNano())
	return r, s, run
}

// As where only its APIService is deleted: a watch that is open goes on.
func TestAResourceThatDiscoveryDropsIsInterruptedThoughItsWatchIsOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, s, run := aboutToEnd(t)
		h := newHandler(r, nil)
		h.retire(t.Context(), s, run, kube.Resource{Name: "things"}, "")
		<-s.ending.done
		r.queue.Close()
		entries, err := r.queue.Next(t.Context(), 10, 1<<20, 0)
		require.NoError(t, err)
		require.Len(t, entries, 1)
		require.Equal(t, delta.Interrupted, entries[0].Marker.Kind)
		require.Equal(t, delta.CauseNotFound, entries[0].Marker.Cause)
	})
}

func TestARunIsConcludedIfItWatchedItsDefinitionToTheEnd(t *testing.T) {
	_, s, run := aboutToEnd(t)
	require.False(t, run.concluded(), "it may have had more")
	require.NoError(t, newStore(s, run).Interrupted(delta.CauseNotFound, "the server could not find the requested resource"))
	require.True(t, run.concluded())
	run.outlivedBy(kube.Resource{DefinitionUID: "u1"})
	require.True(t, run.concluded())

	require.NoError(t, newStore(s, run).Resumed())
	require.False(t, run.concluded(), "it was served again")
	require.NoError(t, newStore(s, run).Interrupted(delta.CauseNotFound, "the server could not find the requested resource"))
	require.True(t, run.concluded())
	run.outlivedBy(kube.Resource{DefinitionUID: "u2"})
	run.outlivedBy(kube.Resource{DefinitionUID: "u1"})
	require.False(t, run.concluded(), "another definition was not followed")

	_, s, run = aboutToEnd(t)
	run.closed.Store(time.Now().Add(-time.Minute).UnixNano())
	require.NoError(t, newStore(s, run).Interrupted(delta.CauseNotFound, "the server could not find the requested resource"))
	require.False(t, run.concluded())
}
