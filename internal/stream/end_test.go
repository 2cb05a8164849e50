package stream

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/deltafifo"
	"github.com/kuberewind/kuberewind/internal/lifecycle"
	"github.com/kuberewind/kuberewind/internal/telemetry"
	"github.com/kuberewind/kuberewind/kube"
	"github.com/kuberewind/kuberewind/reflector"
)

func TestTheRecordOfAnEndedResourceIsCompleteOnlyIfItWasWatchedToItsEnd(t *testing.T) {
	nothing := func(*store) {}
	for name, test := range map[string]struct {
		before func(*store)
		closed time.Duration // before the server reports that it does not serve the resource
		ended  types.UID     // the definition that ended, as reported
		at     string
		want   delta.MarkerKind
	}{
		"watched to its end":      {nothing, 0, "u1", "", delta.Resumed},
		"not watched for a while": {nothing, time.Minute, "u1", "", delta.Interrupted},
		"interrupted before": {func(st *store) { require.NoError(t, st.Interrupted(delta.CauseForbidden, "")) },
			0, "u1", "", delta.Interrupted},
		"an object of it is alive": {func(st *store) { require.NoError(t, st.Add(&kube.Object{ObjectMeta: metav1.ObjectMeta{Name: "a"}})) },
			0, "u1", "", delta.Interrupted},
		"not watched, but known to have gone":   {nothing, time.Minute, "u1", "9", delta.Replaced},
		"gone before the recorded position":     {nothing, time.Minute, "u1", "4", delta.Interrupted},
		"watched to its end, and defined again": {nothing, 0, "u2", "9", delta.Replaced},
	} {
		t.Run(name, func(t *testing.T) {
			l, s, run := aboutToEnd(t)
			st := newStore(s, run)
			test.before(st)
			run.closed.Store(time.Now().Add(-test.closed).UnixNano())
			require.NoError(t, st.Interrupted(delta.CauseNotFound, "the server could not find the requested resource"))
			run.fifo.Close()
			run.OutlivedBy(kube.Resource{DefinitionUID: test.ended})
			require.NoError(t, l.End(t.Context(), s, run, kube.Resource{DefinitionUID: test.ended}, test.at))
			l.Queue.Close()
			entries, err := l.Queue.Next(t.Context(), 10, 1<<20, 0)
			require.NoError(t, err)
			require.Equal(t, test.want, entries[len(entries)-1].Marker.Kind)
		})
	}
}

// Otherwise the value stays at 0, which looks like a stream that cannot be followed.
func TestAnEndedResourceHasNoValueThatSaysWhetherItIsFollowed(t *testing.T) {
	for name, test := range map[string]struct {
		closed time.Duration
		values int
	}{
		"it was watched to its end": {0, 0},
		"it is in an open gap":      {time.Minute, 1},
	} {
		t.Run(name, func(t *testing.T) {
			l, s, run := aboutToEnd(t)
			metrics := telemetry.NewMetrics()
			s.counters = newCounters(metrics, s.resource.GroupResource())
			require.Zero(t, valuesOf(metrics.Streams.Up), "a stream that is never followed has none, either")
			s.counters.up(1)
			require.Equal(t, 1, valuesOf(metrics.Streams.Up))
			run.closed.Store(time.Now().Add(-test.closed).UnixNano())
			require.NoError(t, newStore(s, run).Interrupted(delta.CauseNotFound, "the server could not find the requested resource"))
			run.fifo.Close()
			run.OutlivedBy(kube.Resource{DefinitionUID: "u1"})
			require.NoError(t, l.End(t.Context(), s, run, kube.Resource{DefinitionUID: "u1"}, ""))
			require.Equal(t, test.values, valuesOf(metrics.Streams.Up))
		})
	}
}

func valuesOf(metric prometheus.Collector) int {
	values := make(chan prometheus.Metric, 10)
	metric.Collect(values)
	return len(values)
}

// aboutToEnd returns a stream that is about to end, without a database. Its watch was closed a moment ago.
func aboutToEnd(t *testing.T) (*Launcher, *Stream, *Run) {
	t.Helper()
	l, s := launcher(0), bare("things")
	run := &Run{served: kube.Resource{DefinitionUID: "u1"}, gone: make(chan struct{}), done: make(chan struct{}), stop: func(error) {}, fifo: l.Queue.FIFO(deltafifo.FIFOOptions{Stream: s})}
	close(run.done)
	s.run = run
	run.reflector = reflector.NewReflectorWithOptions(&cache.ListWatch{}, nil, newStore(s, run), reflector.Options{ResourceVersion: "5"})
	run.closed.Store(time.Now().UnixNano())
	return l, s, run
}

func TestARunIsConcludedIfItWatchedItsDefinitionToTheEnd(t *testing.T) {
	_, s, run := aboutToEnd(t)
	require.False(t, run.Concluded(), "more events may follow")
	require.NoError(t, newStore(s, run).Interrupted(delta.CauseNotFound, "the server could not find the requested resource"))
	require.True(t, run.Concluded())
	run.OutlivedBy(kube.Resource{DefinitionUID: "u1"})
	require.True(t, run.Concluded())

	require.NoError(t, newStore(s, run).Resumed())
	require.False(t, run.Concluded(), "it was served again")
	require.NoError(t, newStore(s, run).Interrupted(delta.CauseNotFound, "the server could not find the requested resource"))
	require.True(t, run.Concluded())
	run.OutlivedBy(kube.Resource{DefinitionUID: "u2"})
	run.OutlivedBy(kube.Resource{DefinitionUID: "u1"})
	require.False(t, run.Concluded(), "another definition was not followed")

	_, s, run = aboutToEnd(t)
	run.closed.Store(time.Now().Add(-time.Minute).UnixNano())
	require.NoError(t, newStore(s, run).Interrupted(delta.CauseNotFound, "the server could not find the requested resource"))
	require.False(t, run.Concluded())
}

var endedThings = kube.Resource{Name: "things", Kind: "Thing", Version: "v1", Namespaced: true, DefinitionUID: "u"}

// Another definition came and went while the resource was not followed. The next one came before that was recorded.
func TestAStreamWhoseEndWasCancelledIsListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, s, _ := aboutToEnd(t)
		l.Queue, s.run, s.standing.ended = deltafifo.New(deltafifo.Options{MaxBytes: 1}), nil, "4"
		ctx, cancel := context.WithCancel(t.Context())
		failed := make(chan error, 1)
		go func() { failed <- l.End(ctx, s, nil, endedThings, "9") }()
		synctest.Wait() // The gap fills the queue.
		cancel()
		require.Error(t, <-failed)
		require.Empty(t, s.standing.ended)
		require.Equal(t, lifecycle.Decision{Do: lifecycle.List, Reason: lifecycle.Reason{Cause: delta.CauseNotFound}}, s.next(nil))
	})
}

// No recorder followed the resource in the new history.
func TestAnEndBeforeTheRecordedEndIsFromAnotherHistory(t *testing.T) {
	l, s, _ := aboutToEnd(t)
	s.run, s.standing.ended = nil, "4"
	require.NoError(t, l.End(t.Context(), s, nil, endedThings, "4"))
	require.Zero(t, l.Queue.Stats().Entries, "the end is on record")
	require.NoError(t, l.End(t.Context(), s, nil, endedThings, "2"))
	l.Queue.Close()
	entries, err := l.Queue.Next(t.Context(), 10, 1<<20, 0)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	require.Equal(t, delta.Interrupted, entries[0].Marker.Kind)
}

// This happens if only its APIService is deleted: an open watch goes on.
func TestAResourceThatDiscoveryDropsIsInterruptedDespiteAnOpenWatch(t *testing.T) {
	l, s, run := aboutToEnd(t)
	run.OutlivedBy(kube.Resource{Name: "things"})
	require.NoError(t, l.End(t.Context(), s, run, kube.Resource{Name: "things"}, ""))
	l.Queue.Close()
	entries, err := l.Queue.Next(t.Context(), 10, 1<<20, 0)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	require.Equal(t, delta.Interrupted, entries[0].Marker.Kind)
	require.Equal(t, delta.CauseNotFound, entries[0].Marker.Cause)
}
