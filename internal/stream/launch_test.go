package stream

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/deltafifo"
	"github.com/kuberewind/kuberewind/internal/filter"
	"github.com/kuberewind/kuberewind/internal/lifecycle"
	"github.com/kuberewind/kuberewind/internal/rollback"
	"github.com/kuberewind/kuberewind/internal/spooling"
	"github.com/kuberewind/kuberewind/internal/telemetry"
	"github.com/kuberewind/kuberewind/kube"
	"github.com/kuberewind/kuberewind/reflector"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// bare returns a stream without a record, whose rules exclude nothing.
func bare(name string) *Stream {
	resource := kube.Resource{Name: name}
	return &Stream{
		resource: resource, recorded: &postgres.Stream{}, decisions: decisions{rules: (&filter.Filter{}).For(resource.GroupResource())},
		rollbackStream: rollback.New(rollback.Options{}).Add(rollback.Spec{Name: name}), started: started{closed: make(chan struct{})},
		counters: newCounters(telemetry.NewMetrics(), resource.GroupResource()),
	}
}

// launcher returns a launcher with a queue of so many bytes, 0 for the default.
func launcher(bytes int64) *Launcher {
	return NewLauncher(Launcher{Queue: deltafifo.New(deltafifo.Options{MaxBytes: bytes}), Lists: NewGate(1), Now: time.Now, Returned: func() <-chan struct{} { return nil }, Log: slog.New(slog.DiscardHandler)})
}

func TestAGapIsQueuedBeforeWhatAListShows(t *testing.T) {
	for cause, want := range map[delta.Cause][]delta.MarkerKind{
		delta.CauseExpired:   {delta.Interrupted, "", delta.Replaced},
		delta.CauseFirstList: {"", delta.Replaced}, // nothing was recorded before it
	} {
		queue := deltafifo.New(deltafifo.Options{})
		s := bare("pods")
		run := &Run{fifo: queue.FIFO(deltafifo.FIFOOptions{Stream: s})}
		st := newStore(s, run)
		require.NoError(t, st.BeginReplace(cause, "why", "7"))
		require.NoError(t, st.ReplacePage([]any{&kube.Object{ObjectMeta: metav1.ObjectMeta{Name: "a"}}}, "9"))
		require.True(t, run.listing.Load())
		require.NoError(t, st.EndReplace("9"))
		require.False(t, run.listing.Load())
		queue.Close()
		entries, err := queue.Next(t.Context(), 10, 1<<20, 0)
		require.NoError(t, err)
		var got []delta.MarkerKind
		for _, e := range entries {
			kind := delta.MarkerKind("")
			if e.Marker != nil {
				kind = e.Marker.Kind
			}
			got = append(got, kind)
		}
		require.Equal(t, want, got, cause)
	}
}

func TestAStreamResumesWhereItsPreviousRunEnded(t *testing.T) {
	s := bare("pods")
	before := &Run{reflector: reflector.NewReflectorWithOptions(fresh{}, &kube.Object{}, &deltafifo.FIFO{}, reflector.Options{ResourceVersion: "42"})}
	require.Equal(t, lifecycle.Decision{Do: lifecycle.Resume, At: "42", Reason: lifecycle.Reason{Cause: delta.CauseFirstList}}, s.next(before), "though the record has not come so far")
	before.listing.Store(true)
	before.listCause = delta.CauseExpired
	require.Equal(t, lifecycle.Decision{Do: lifecycle.List, Reason: lifecycle.Reason{Cause: delta.CauseExpired}}, s.next(before), "a list that was cut starts over")
}

// Entries that the database has not taken yet are queued. They are recorded before any entry of the next run.
func TestNewFilterRulesMakeOneListDue(t *testing.T) {
	queue := deltafifo.New(deltafifo.Options{})
	s := bare("pods")
	s.standing.listedUnder = "-pods?tier=batch"
	before := ended(queue, "42")
	require.Equal(t, lifecycle.Decision{Do: lifecycle.List, Reason: lifecycle.Reason{Cause: delta.CauseConfiguration}}, s.next(before))
	st := newStore(s, before)
	require.NoError(t, st.BeginReplace(delta.CauseConfiguration, "", "42"))
	require.Equal(t, lifecycle.Decision{Do: lifecycle.List, Reason: lifecycle.Reason{Cause: delta.CauseConfiguration}}, s.next(before))
	require.NoError(t, st.EndReplace("42"))
	require.Equal(t, lifecycle.Decision{Do: lifecycle.Resume, At: "42", Reason: lifecycle.Reason{Cause: delta.CauseFirstList}}, s.next(before))
}

func TestAFullQueueDoesNotBlockStartingAndStoppingStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := launcher(1)
		require.NoError(t, l.Queue.FIFO(deltafifo.FIFOOptions{}).Bookmark("1"), "the queue is full, and no consumer drains it")

		s := bare("pods")
		s.run = ended(l.Queue, "4")
		l.Launch(t.Context(), s, kube.Resource{Group: "example.com", Version: "v1", Name: "widgets"}, decided(l, s, "5"))
		synctest.Wait()
		s.Halt()
	})
}

// ended returns a run that got up to a resource version, and was watched until its resource was not served any more.
func ended(queue *deltafifo.Queue, position string) *Run {
	run := &Run{fifo: queue.FIFO(deltafifo.FIFOOptions{}), stop: func(error) {}, done: make(chan struct{}), gone: make(chan struct{})}
	run.reflector = reflector.NewReflectorWithOptions(fresh{}, &kube.Object{}, run.fifo, reflector.Options{ResourceVersion: position})
	close(run.done)
	run.markGone(true)
	return run
}

// decided returns the decision about a definition that began at a resource version, if no object has outlived the
// previous one.
func decided(l *Launcher, s *Stream, begins string) lifecycle.Decision {
	f := s.Facts(s.Current())
	f.Begins, f.Vacant, f.Objects = begins, l.Vacant(s), lifecycle.None
	return lifecycle.Decide(f)
}

func TestADueListStaysDueIfTheRunEndsFirst(t *testing.T) {
	l := launcher(0)
	s := bare("widgets")
	s.run, s.standing.due = ended(l.Queue, "4"), lifecycle.Reason{Cause: delta.CauseExpired, Detail: "why"}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	l.Launch(ctx, s, kube.Resource{Group: "example.com", Version: "v1", Name: "widgets"}, s.next(s.Current()))
	s.Halt()
	require.Equal(t, lifecycle.Decision{Do: lifecycle.List, Reason: lifecycle.Reason{Cause: delta.CauseExpired, Detail: "why"}}, s.next(s.Current()))
	l.Launch(ctx, s, kube.Resource{Group: "example.com", Version: "v1", Name: "widgets"}, s.next(s.Current()))
	s.Halt()
	require.Equal(t, lifecycle.Decision{Do: lifecycle.List, Reason: lifecycle.Reason{Cause: delta.CauseExpired, Detail: "why"}}, s.next(s.Current()), "also if another run ends first")
}

func TestADueListKeepsItsReason(t *testing.T) {
	queue := deltafifo.New(deltafifo.Options{})
	s := bare("widgets")
	s.expiryCause = delta.CauseSpoolCorrupt
	run := &Run{fifo: queue.FIFO(deltafifo.FIFOOptions{Stream: s}), gone: make(chan struct{}), listDetail: "why"}
	st := newStore(s, run)
	because := func() []string {
		cause, detail := st.because(delta.CauseExpired, "too old")
		return []string{string(cause), detail}
	}
	require.Equal(t, []string{string(delta.CauseExpired), "why; too old"}, because())
	require.NoError(t, st.BeginReplace(delta.CauseExpired, "", ""))
	require.NoError(t, st.EndReplace("9"))
	s.expiryCause = delta.CauseSpoolCorrupt
	require.Equal(t, string(delta.CauseSpoolCorrupt), because()[0], "that list has ended")
}

// Each reason comes on top of those that are less than it.
func TestAnExpiredListHasTheFirstReasonThatApplies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queue := deltafifo.New(deltafifo.Options{MaxBytes: 1})
		s := bare("pods")
		run := &Run{fifo: queue.FIFO(deltafifo.FIFOOptions{Stream: s}), listCause: delta.CauseHistoryReversed, gone: make(chan struct{})}
		st := newStore(s, run)
		is := func(cause delta.Cause, detail string) {
			t.Helper()
			got, because := st.because(delta.CauseExpired, "too old")
			require.Equal(t, cause, got)
			require.Contains(t, because, detail)
		}
		is(delta.CauseExpired, "too old")
		blockFor(t, queue, st, overflowAfter-time.Millisecond)
		is(delta.CauseExpired, "too old")
		blockFor(t, queue, st, time.Millisecond)
		is(delta.CauseOverflow, "held back for 1s")
		s.expiryCause = delta.CauseSpoolCorrupt
		is(delta.CauseSpoolCorrupt, "spool could not be read")
		run.listDetail = "objects may have outlived it"
		is(delta.CauseExpired, "objects may have outlived it")
		run.listing.Store(true)
		is(delta.CauseHistoryReversed, "its list starts over")
		s.rollbackStream = rolledBack(t)
		is(delta.CauseHistoryReversed, "which etcd has not reached")
	})
}

// blockFor makes a stream wait for room in the queue.
func blockFor(t *testing.T, queue *deltafifo.Queue, st *store, d time.Duration) {
	t.Helper()
	a := &kube.Object{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	require.NoError(t, st.Add(a))
	added := make(chan error, 1)
	go func() { added <- st.Update(a) }()
	time.Sleep(d)
	for range 2 {
		entries, err := queue.Next(t.Context(), 1, 1<<20, 0)
		require.NoError(t, err)
		queue.Done(len(entries))
	}
	require.NoError(t, <-added)
}

// rolledBack returns a stream that has come further than etcd.
func rolledBack(t *testing.T) *rollback.Stream {
	t.Helper()
	c := rollback.New(rollback.Options{}).Add(rollback.Spec{Name: "configmaps"})
	c.ListWith((&FakeEtcd{Now: 50}).Lister)
	c.Follow(func(string) {})
	c.Recall(rollback.Recalled{Position: "60"})
	proof, err := c.CheckRollback(t.Context(), "")
	require.NoError(t, err)
	require.Contains(t, proof, "which etcd has not reached")
	return c
}

func TestANewDefinitionIsFollowedFromItsStartIfTheRecordIsComplete(t *testing.T) {
	for _, test := range []struct {
		recorded, want string
		unseen         bool // its end
	}{
		{recorded: "", want: ""},                 // never listed, or a list was cut, or the rules are others: only a list makes it complete
		{recorded: "4", want: "5"},               // nothing came before
		{recorded: "4", want: "4", unseen: true}, // more events of the previous definition may come between
		{recorded: "9", want: "9"},               // the events before are on record
	} {
		l := launcher(0)
		s := bare("pods")
		s.run = ended(l.Queue, test.recorded)
		s.run.followed = !test.unseen
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		l.Launch(ctx, s, kube.Resource{Group: "example.com", Version: "v1", Name: "widgets"}, decided(l, s, "5"))
		s.Halt()
		require.Equal(t, test.want, s.Current().reflector.LastSyncResourceVersion(), "%+v", test)
	}
}

func TestARunIsDecidedAboutOnlyWhenItHasEnded(t *testing.T) {
	l := launcher(0)
	run, widgets := ended(l.Queue, "4"), kube.Resource{Group: "example.com", Version: "v1", Name: "widgets"}
	run.done, run.gone = make(chan struct{}), make(chan struct{})
	run.stop = func(error) {
		run.reflector = ended(l.Queue, "7").reflector
		close(run.done)
	}
	s := bare("widgets")
	s.run = run
	require.True(t, run.Running())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	l.Launch(ctx, s, widgets, lifecycle.Decision{})
	s.Halt()
	require.Equal(t, "7", s.Current().reflector.LastSyncResourceVersion())
}

func TestAStreamWithARecordedRollbackGapIsRolledBack(t *testing.T) {
	for cause, rolledBack := range map[delta.Cause]bool{delta.CauseHistoryReversed: true, delta.CauseForbidden: false} {
		l := launcher(0)
		s := bare("pods")
		s.standing.interrupted = cause
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		l.Launch(ctx, s, kube.Resource{Version: "v1", Name: "pods"}, s.next(nil))
		s.Halt()
		require.Equal(t, rolledBack, s.rollbackStream.RolledBack(), cause)
	}
}

func TestAStreamGoesOnAtTheEndOfTheSpool(t *testing.T) {
	for _, test := range []struct {
		leftover spooling.Leftover
		want     lifecycle.Decision
	}{
		{spooling.Leftover{Spooled: deltafifo.Spooled{Position: delta.At("6")}}, lifecycle.Decision{Do: lifecycle.Resume, At: "6", Reason: lifecycle.Reason{Cause: delta.CauseFirstList}}},
		{spooling.Leftover{}, lifecycle.Decision{Do: lifecycle.List, Reason: lifecycle.Reason{Cause: delta.CauseFirstList}}},
		{spooling.Leftover{Spooled: deltafifo.Spooled{Position: delta.At("6")}, Listing: true, ListCause: "expired"}, lifecycle.Decision{Do: lifecycle.List, Reason: lifecycle.Reason{Cause: "expired"}}},
	} {
		s := bare("widgets")
		s.leftover = &test.leftover
		require.Equal(t, test.want, s.next(nil), "%+v", test.leftover)
	}
}

// The rules differ from the previous recorder's rules, and etcd was restored while no recorder ran.
func TestADueListReportsThatHistoryWentBackwards(t *testing.T) {
	c := rolledBack(t)
	proof := c.RollbackProof()
	queue := deltafifo.New(deltafifo.Options{})
	run := &Run{fifo: queue.FIFO(deltafifo.FIFOOptions{})}
	s := bare("configmaps")
	s.rollbackStream = c
	st := newStore(s, run)
	require.NoError(t, st.BeginReplace(delta.CauseConfiguration, "", ""))
	require.NoError(t, st.EndReplace("50"))
	require.False(t, c.RolledBack())
	queue.Close()
	entries, err := queue.Next(t.Context(), 10, 1<<20, 0)
	require.NoError(t, err)
	require.Len(t, entries, 2)
	for _, e := range entries {
		require.Equal(t, delta.CauseHistoryReversed, e.Marker.Cause, "resource versions mean something else now")
		require.Equal(t, proof, e.Marker.Detail)
	}
}
