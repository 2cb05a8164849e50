package recorder

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/deltafifo"
	"github.com/kuberewind/kuberewind/internal/filter"
	"github.com/kuberewind/kuberewind/internal/lifecycle"
	"github.com/kuberewind/kuberewind/internal/redact"
	"github.com/kuberewind/kuberewind/internal/rollback"
	"github.com/kuberewind/kuberewind/internal/spooling"
	"github.com/kuberewind/kuberewind/kube"
	"github.com/kuberewind/kuberewind/reflector"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

func TestAGapIsQueuedBeforeWhatAListShows(t *testing.T) {
	for cause, want := range map[delta.Cause][]delta.MarkerKind{
		delta.CauseExpired:   {delta.Interrupted, "", delta.Replaced},
		delta.CauseFirstList: {"", delta.Replaced}, // there was nothing before it
	} {
		queue := deltafifo.New(deltafifo.Options{})
		all, err := filter.New(nil, nil)
		require.NoError(t, err)
		s := &stream{record: &postgres.Stream{}, rules: all.For(schema.GroupResource{Resource: "pods"}), settle: func() {}, etcd: rollback.New(rollback.Options{}).Add(rollback.Spec{Name: "pods"})}
		run := &streamRun{fifo: queue.FIFO(deltafifo.FIFOOptions{Stream: s})}
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
	s := &stream{record: &postgres.Stream{}, etcd: rollback.New(rollback.Options{}).Add(rollback.Spec{Name: "pods"})}
	before := &streamRun{reflector: reflector.NewReflectorWithOptions(fresh{}, &kube.Object{}, &deltafifo.FIFO{}, reflector.Options{ResourceVersion: "42"})}
	require.Equal(t, lifecycle.Decision{Do: lifecycle.Resume, At: "42", Reason: lifecycle.Reason{Cause: delta.CauseFirstList}}, s.next(before), "though the record is not there yet")
	before.listing.Store(true)
	before.listCause = delta.CauseExpired
	require.Equal(t, lifecycle.Decision{Do: lifecycle.List, Reason: lifecycle.Reason{Cause: delta.CauseExpired}}, s.next(before), "a list that was cut is begun anew")
}

// What the database has not taken yet is queued, and is recorded before anything of the next run.
func TestNewFilterRulesMakeOneListDue(t *testing.T) {
	queue := deltafifo.New(deltafifo.Options{})
	s := &stream{record: &postgres.Stream{}, listedUnder: "-pods?tier=batch", settle: func() {}, etcd: rollback.New(rollback.Options{}).Add(rollback.Spec{Name: "pods"})}
	s.rules = (&filter.Filter{}).For(schema.GroupResource{Resource: "pods"})
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
		redactor, err := redact.New(redact.Key{}, redact.Record, nil)
		require.NoError(t, err)
		r := &Recorder{log: slog.New(slog.DiscardHandler), gate: newGate(1), redactor: redactor, queue: deltafifo.New(deltafifo.Options{MaxBytes: 1})}
		require.NoError(t, r.queue.FIFO(deltafifo.FIFOOptions{}).Bookmark("1"), "the queue is full, and nobody drains it")

		s := &stream{record: &postgres.Stream{}, etcd: rollback.New(rollback.Options{}).Add(rollback.Spec{Name: "pods"}), run: ended(r.queue, "4")}
		r.launch(t.Context(), s, kube.Resource{Group: "example.com", Version: "v1", Name: "widgets"}, decided(r, s, "5"))
		synctest.Wait()
		s.halt()
	})
}

// ended is a run that got up to a resource version, and was watched until its resource was not served any more.
func ended(queue *deltafifo.Queue, position string) *streamRun {
	run := &streamRun{fifo: queue.FIFO(deltafifo.FIFOOptions{}), stop: func(error) {}, done: make(chan struct{}), gone: make(chan struct{})}
	run.reflector = reflector.NewReflectorWithOptions(fresh{}, &kube.Object{}, run.fifo, reflector.Options{ResourceVersion: position})
	close(run.done)
	run.leaves(true)
	return run
}

// decided is what is decided about a definition that began at a resource version, if nothing has outlived the one before.
func decided(r *Recorder, s *stream, begins string) lifecycle.Decision {
	f := s.facts(s.current())
	f.Begins, f.Vacant, f.Objects = begins, r.vacant(s), lifecycle.None
	return lifecycle.Decide(f)
}

func TestADueListStaysDueIfTheRunEndsFirst(t *testing.T) {
	redactor, err := redact.New(redact.Key{}, redact.Record, nil)
	require.NoError(t, err)
	r := &Recorder{log: slog.New(slog.DiscardHandler), gate: newGate(1), redactor: redactor, queue: deltafifo.New(deltafifo.Options{})}
	s := &stream{record: &postgres.Stream{}, etcd: rollback.New(rollback.Options{}).Add(rollback.Spec{Name: "widgets"}), run: ended(r.queue, "4"), due: lifecycle.Reason{Cause: delta.CauseExpired, Detail: "why"}}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r.launch(ctx, s, kube.Resource{Group: "example.com", Version: "v1", Name: "widgets"}, s.next(s.current()))
	s.halt()
	require.Equal(t, lifecycle.Decision{Do: lifecycle.List, Reason: lifecycle.Reason{Cause: delta.CauseExpired, Detail: "why"}}, s.next(s.current()))
	r.launch(ctx, s, kube.Resource{Group: "example.com", Version: "v1", Name: "widgets"}, s.next(s.current()))
	s.halt()
	require.Equal(t, lifecycle.Decision{Do: lifecycle.List, Reason: lifecycle.Reason{Cause: delta.CauseExpired, Detail: "why"}}, s.next(s.current()), "and if another does")
}

func TestADueListKeepsItsReason(t *testing.T) {
	queue := deltafifo.New(deltafifo.Options{})
	s := &stream{record: &postgres.Stream{}, settle: func() {}, etcd: rollback.New(rollback.Options{}).Add(rollback.Spec{Name: "widgets"}), excuse: delta.CauseSpoolCorrupt}
	run := &streamRun{fifo: queue.FIFO(deltafifo.FIFOOptions{Stream: s}), gone: make(chan struct{}), listDetail: "why"}
	st := newStore(s, run)
	because := func() []string {
		cause, detail := st.because(delta.CauseExpired, "too old")
		return []string{string(cause), detail}
	}
	require.Equal(t, []string{string(delta.CauseExpired), "why; too old"}, because())
	require.NoError(t, st.BeginReplace(delta.CauseExpired, "", ""))
	require.NoError(t, st.EndReplace("9"))
	s.excuse = delta.CauseSpoolCorrupt
	require.Equal(t, string(delta.CauseSpoolCorrupt), because()[0], "that list has ended")
}

func TestANewDefinitionIsFollowedFromItsBeginIfTheRecordIsComplete(t *testing.T) {
	for _, test := range []struct {
		recorded, want string
		unseen         bool // its end
	}{
		{recorded: "", want: ""},                 // never listed, or a list was cut, or the rules are others: only a list makes it whole
		{recorded: "4", want: "5"},               // nothing was before
		{recorded: "4", want: "4", unseen: true}, // more of the one before may come between
		{recorded: "9", want: "9"},               // what comes before is on record
	} {
		redactor, err := redact.New(redact.Key{}, redact.Record, nil)
		require.NoError(t, err)
		r := &Recorder{log: slog.New(slog.DiscardHandler), gate: newGate(1), redactor: redactor, queue: deltafifo.New(deltafifo.Options{})}
		s := &stream{record: &postgres.Stream{}, etcd: rollback.New(rollback.Options{}).Add(rollback.Spec{Name: "pods"}), run: ended(r.queue, test.recorded)}
		s.run.followed = !test.unseen
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		r.launch(ctx, s, kube.Resource{Group: "example.com", Version: "v1", Name: "widgets"}, decided(r, s, "5"))
		s.halt()
		require.Equal(t, test.want, s.current().reflector.LastSyncResourceVersion(), "%+v", test)
	}
}

func TestARunThatMovesIsDecidedAboutWhenItHasEnded(t *testing.T) {
	redactor, err := redact.New(redact.Key{}, redact.Record, nil)
	require.NoError(t, err)
	r := &Recorder{log: slog.New(slog.DiscardHandler), gate: newGate(1), redactor: redactor, queue: deltafifo.New(deltafifo.Options{})}
	run, widgets := ended(r.queue, "4"), kube.Resource{Group: "example.com", Version: "v1", Name: "widgets"}
	run.done, run.gone = make(chan struct{}), make(chan struct{})
	run.stop = func(error) {
		run.reflector = ended(r.queue, "7").reflector
		close(run.done)
	}
	s := &stream{record: &postgres.Stream{}, etcd: rollback.New(rollback.Options{}).Add(rollback.Spec{Name: "widgets"}), run: run}
	d, err := newHandler(r, nil).decide(t.Context(), s, widgets, "")
	require.NoError(t, err)
	require.Zero(t, d)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r.launch(ctx, s, widgets, d)
	s.halt()
	require.Equal(t, "7", s.current().reflector.LastSyncResourceVersion())
}

func TestAStreamWhoseGapIsOnRecordProvesNothing(t *testing.T) {
	redactor, err := redact.New(redact.Key{}, redact.Record, nil)
	require.NoError(t, err)
	for cause, left := range map[delta.Cause]bool{delta.CauseHistoryReversed: true, delta.CauseForbidden: false} {
		r := &Recorder{log: slog.New(slog.DiscardHandler), gate: newGate(1), redactor: redactor, queue: deltafifo.New(deltafifo.Options{})}
		s := &stream{record: &postgres.Stream{}, etcd: rollback.New(rollback.Options{}).Add(rollback.Spec{Name: "pods"}), interrupted: cause}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		r.launch(ctx, s, kube.Resource{Version: "v1", Name: "pods"}, s.next(nil))
		s.halt()
		require.Equal(t, left, s.etcd.HasLeft(), cause)
	}
}

func TestAStreamGoesOnBehindTheSpool(t *testing.T) {
	for _, test := range []struct {
		left spooling.Leftover
		want lifecycle.Decision
	}{
		{spooling.Leftover{Spooled: deltafifo.Spooled{Position: delta.At("6")}}, lifecycle.Decision{Do: lifecycle.Resume, At: "6", Reason: lifecycle.Reason{Cause: delta.CauseFirstList}}},
		{spooling.Leftover{}, lifecycle.Decision{Do: lifecycle.List, Reason: lifecycle.Reason{Cause: delta.CauseFirstList}}},
		{spooling.Leftover{Spooled: deltafifo.Spooled{Position: delta.At("6")}, Listing: true, ListCause: "expired"}, lifecycle.Decision{Do: lifecycle.List, Reason: lifecycle.Reason{Cause: "expired"}}},
	} {
		s := &stream{record: &postgres.Stream{}, etcd: rollback.New(rollback.Options{}).Add(rollback.Spec{Name: "widgets"}), left: &test.left}
		require.Equal(t, test.want, s.next(nil), "%+v", test.left)
	}
}
