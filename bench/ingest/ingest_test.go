package ingest

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/bench/data"
	"github.com/kuberewind/kuberewind/bench/measure"
	"github.com/kuberewind/kuberewind/checkpoint"
	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/internal/recordertest"
	"github.com/kuberewind/kuberewind/kube"
	"github.com/kuberewind/kuberewind/patch"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// benched has a Bench on a server of its own, and, if there are events, on what is generated; so many more are held back.
func benched(t *testing.T, s data.Settings, held int, do func(*Bench)) {
	t.Helper()
	dir := t.TempDir()
	options := serverOptions
	options.Durable = false // it shows that each way works, not its cost
	require.NoError(t, measure.OnServer(t.Context(), options, func(server *measure.Server) error {
		b := &Bench{Server: server, Recorder: recordertest.Program("recorder"), Dir: dir}
		if s.Events > 0 {
			_, err := b.on(data.Source{Settings: s}, func(int) int { return held })
			require.NoError(t, err)
		}
		do(b)
		return nil
	}))
}

func TestEachWayHasEachEventOnRecord(t *testing.T) {
	t.Parallel()
	const events, held = 1500, 700
	benched(t, data.Settings{Seed: 2, Live: 300, Events: events}, held, func(b *Bench) {
		require.Equal(t, events, b.events)
		for _, w := range []way{recorder, byCopy, byInsert, watching} {
			t.Run(w.String(), func(t *testing.T) {
				began := time.Now()
				out, err := b.once(t.Context(), w, 0)
				require.NoError(t, err)
				require.Len(t, out.Latencies, events, "none that is held back")
				require.Positive(t, out.Latencies[0].took)
				if w == watching {
					return
				}
				require.Less(t, out.Took, time.Since(began))
				require.InDelta(t, events, out.values()[speed]*out.Took.Seconds(), 0.001)
				require.Positive(t, out.After.Rows.minus(out.Before.Rows).Heap)
				require.Greater(t, out.After.WAL, out.Before.WAL)
				require.Equal(t, w == recorder, out.Upkeep.Sweep.Rows.Heap > 0)
				require.Equal(t, w == recorder, out.Upkeep.Checkpoint.Checkpoints.Toast > 0)
				require.Equal(t, w == recorder, out.values()[cpuUpkeep] > 0)
				require.Equal(t, w == recorder, out.Upkeep.Merged == held, "the checkpoint that is weighed is merged of one before and of what was held back: %d", out.Upkeep.Merged)
				for _, name := range []string{speed, disk, logged, memory, ofAdded, ofUpdated, ofDeleted} {
					require.Positive(t, out.values()[name], name)
				}
			})
		}
	})
}

func TestEventsThatAreHeldBackAreNotMeasured(t *testing.T) {
	t.Parallel()
	settings := data.Settings{Seed: 2, Live: 300, Events: 2000}
	var all, more Bench
	name, err := all.on(data.Source{Settings: settings}, nil)
	require.NoError(t, err)
	require.Zero(t, all.held)
	same, err := more.on(data.Source{Settings: settings}, held)
	require.NoError(t, err)
	require.Equal(t, name, same)
	require.Contains(t, name, "2,000 events")
	require.Equal(t, all.events, more.events)
	require.Equal(t, all.span, more.span)
	live, _ := more.set.Len()
	require.Equal(t, int(checkpoint.Interval(int64(live))*9/10), more.held)
	next, stop := iter.Pull2(more.set.Events())
	defer stop()
	for want, err := range all.set.Events() {
		require.NoError(t, err)
		e, _, _ := next()
		require.Equal(t, want, e, "more events leave the first ones as they are")
	}

	path := filepath.Join(t.TempDir(), "recording")
	require.NoError(t, data.Write(path, all.set, "v1"))
	var recorded Bench
	name, err = recorded.on(data.Source{Path: path}, func(int) int { return 500 })
	require.NoError(t, err)
	require.Equal(t, 2000, recorded.events+recorded.held)
	require.GreaterOrEqual(t, recorded.held, 500)
	require.Contains(t, name, "1,500 events")
	_, err = recorded.on(data.Source{Path: path}, held)
	require.ErrorContains(t, err, "has 2000 events, which are too few")
}

func TestEventsThatShareAResourceVersionAreNotDivided(t *testing.T) {
	t.Parallel()
	set, err := data.Generate(data.Settings{Seed: 2, Live: 1000, Events: 8000})
	require.NoError(t, err)
	var events []data.Event
	shared := 0
	for e, err := range set.Events() {
		require.NoError(t, err)
		if n := len(events); n > 0 && events[n-1].RV == e.RV {
			shared = n
		}
		events = append(events, e)
	}
	require.Positive(t, shared)
	n, took, err := whole(set, shared)
	require.NoError(t, err)
	require.Less(t, n, shared)
	require.NotEqual(t, events[n-1].RV, events[n].RV)
	require.Equal(t, events[n].RV, events[shared].RV)
	require.Equal(t, events[n-1].At.Sub(events[0].At), took)
}

func TestASweepIsChargedOnceInEachDayOfTheData(t *testing.T) {
	o := Outcome{Events: 1000, Took: time.Second, Span: 6 * time.Hour, Upkeep: Upkeep{Swept: 40, SweepCPU: 8 * time.Millisecond}}
	o.Upkeep.Sweep.Rows.Heap, o.Upkeep.Sweep.WAL = 80_000, 100_000
	v := o.values()
	require.InDelta(t, 20, v[sweeping], 0.001)
	require.InDelta(t, 20, v[disk], 0.001)
	require.InDelta(t, 25, v[logged], 0.001)
	require.InDelta(t, 2, v[cpuUpkeep], 0.001)
	require.InDelta(t, 2, v[cpuAll], 0.001)
	require.InDelta(t, 2000, v[swept], 0.001)
}

func TestACheckpointIsChargedOnceInEachInterval(t *testing.T) {
	const live = 500
	interval := checkpoint.Interval(live)
	for _, events := range []int{1000, 1_000_000} {
		micros := func(each int, n int) time.Duration { return time.Duration(each*n) * time.Microsecond }
		o := Outcome{
			Events: events, Live: live, Took: time.Second, Postgres: micros(7, events), Pointing: micros(3, events), Upkeep: Upkeep{CheckpointCPU: micros(2, int(interval))},
		}
		o.Upkeep.Checkpoint.Checkpoints.Toast = 5 * interval
		v := o.values()
		require.InDelta(t, 4, v[cpuServer], 0.001, "without the recorder's own checkpoints")
		require.InDelta(t, 2, v[cpuUpkeep], 0.001, "of %d events as of others", events)
		require.InDelta(t, 6, v[cpuAll], 0.001)
		require.InDelta(t, 5, v[pointing], 0.001)
	}
}

func TestARunWhoseSessionOfCheckpointsIsReplacedFails(t *testing.T) {
	var o Outcome
	require.NoError(t, o.charge(usage{postgres: 3, pointing: 1, session: 7}, usage{postgres: 9, pointing: 3, session: 7}))
	require.EqualValues(t, 6, o.Postgres)
	require.EqualValues(t, 2, o.Pointing)
	require.ErrorContains(t, o.charge(usage{pointing: 1, session: 7}, usage{pointing: 3, session: 8}), "was process 7 first, and 8 at last")
}

func connect(t *testing.T, address string) *pgx.Conn {
	t.Helper()
	db, err := pgx.Connect(t.Context(), address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close(context.Background()) }) // its server may have gone
	return db
}

// midnight makes a record in which a recorder stored its objects again, because a day had begun, between the first lists and an event.
func midnight(t *testing.T, address string) {
	t.Helper()
	now := time.Now()
	sink, err := postgres.Open(t.Context(), postgres.Config{URL: address, ClusterUID: "u", ClusterName: "bench", Recorder: "bench", Version: "bench", Now: func() time.Time { return now }})
	require.NoError(t, err)
	defer sink.Close()
	stream, err := sink.Stream(t.Context(), postgres.StreamSpec{Version: "v1", Resource: "configmaps", Kind: "ConfigMap", Namespaced: true})
	require.NoError(t, err)
	put := func(name, rv string, kind delta.Type, source delta.Source) {
		doc, err := patch.Canonical(fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"namespace":"n","resourceVersion":%q,"uid":"of %[1]s"}}`, name, rv))
		require.NoError(t, err)
		object, err := kube.Restore(doc)
		require.NoError(t, err)
		batch, err := sink.Encode([]postgres.Item{{Stream: stream.ID(), Kind: postgres.Delta, Type: kind, Source: source, Observed: now, Object: object, Version: "v1"}})
		require.NoError(t, err)
		require.NoError(t, sink.Commit(t.Context(), batch))
	}
	for _, name := range []string{"a", "b", "c"} {
		put(name, "1", delta.Sync, delta.SourceList)
	}
	now = now.AddDate(0, 0, 1)
	require.NoError(t, resync(t.Context(), sink, stream, now))
	put("b", "2", delta.Updated, delta.SourceWatch)
}

func TestAKeyframeOfMidnightIsNoEvent(t *testing.T) {
	t.Parallel()
	benched(t, data.Settings{}, 0, func(b *Bench) {
		address, err := b.Server.NewRecord(t.Context())
		require.NoError(t, err)
		midnight(t, address)
		db := connect(t, address)

		s := &subject{ended: make(chan struct{})}
		last, err := s.await(t.Context(), db, 4)
		require.NoError(t, err)
		require.Equal(t, 7, last)
		short, cancel := context.WithTimeout(t.Context(), 2*poll)
		defer cancel()
		_, err = s.await(short, db, 5)
		require.ErrorIs(t, err, context.DeadlineExceeded, "another event has yet to come")
		db = connect(t, address) // the other may have been interrupted

		const listed = 3
		commits, err := commitsAfter(t.Context(), db, true, listed)
		require.NoError(t, err)
		require.Len(t, commits, 1)
		require.EqualValues(t, 2, commits[0].rv)
		stored, err := storedAfter(t.Context(), db, true, listed)
		require.NoError(t, err)
		require.Equal(t, []string{"MODIFIED"}, slices.Collect(maps.Keys(stored)))
	})
}

func TestTheRecorderIsBuiltAsMakeBuildsIt(t *testing.T) {
	text, err := os.ReadFile("../../Makefile")
	require.NoError(t, err)
	cmd := build(t.Context(), "recorder")
	require.Regexp(t, `CGO_ENABLED=0 .*\$\(GO\) build -v -trimpath -ldflags "\$\(LDFLAGS\)" -o \$\(BIN\)/ \./cmd/\.\.\.`, string(text))
	require.Contains(t, string(text), "LDFLAGS  := -s -w ")
	require.Contains(t, cmd.Env, "CGO_ENABLED=0")
	require.Subset(t, cmd.Args, []string{"build", "-trimpath", "-ldflags", "-s -w"})
}

func TestTheRateAtWhichTheTimeIsBoundLastsUntilCheckpointsAreDue(t *testing.T) {
	sizes := Full()
	require.Greater(t, sizes.lasts(boundAt), time.Minute)
	require.Greater(t, int64(boundAt*time.Minute.Seconds()), checkpoint.Interval(int64(sizes.RateLive)))
	require.Equal(t, sizes.RateFor, sizes.lasts(100))
	quick := Quick()
	require.Equal(t, quick.RateFor, quick.lasts(boundAt))
	require.Contains(t, (&Bench{}).latency(boundAt, "generated", 75*time.Second).Data, "1m15s")
}

func TestARecorderUnderLoadIsLookedAt(t *testing.T) {
	t.Parallel()
	run := &measure.Run{Report: &measure.Report{Seed: 2}, Log: t.Output(), LoadFor: 3 * time.Second, LoadRate: 100}
	benched(t, data.Settings{}, 0, func(b *Bench) { require.NoError(t, b.load(t.Context(), run, 300)) })
	require.NoError(t, run.Report.Table(t.Output()))
	result := run.Report.Results[0]
	require.Len(t, result.Judged, 5)
	require.Len(t, result.Ways, quarters)
	for _, quarter := range result.Ways {
		for _, q := range result.Quantities {
			n := looks
			if q.Name == halfLasts || q.Name == mostLast {
				n = 1
			}
			require.Len(t, quarter.Values[q.Name], n, "%s of %s", q.Name, quarter.Name)
		}
		require.Positive(t, quarter.Values[halfLasts][0])
		require.GreaterOrEqual(t, quarter.Values[mostLast][0], quarter.Values[halfLasts][0])
		require.GreaterOrEqual(t, quarter.Values[heapGoal][0], 4.0, "the least heap of Go")
		require.Greater(t, quarter.Values[resident][0], 10.0)
		require.Greater(t, quarter.Values[goroutines][0], 10.0)
		require.Greater(t, quarter.Values[updated][0], 8.0)
		require.Greater(t, quarter.Values[eachDelta][0], 100.0)
	}
	_, err := addressIn(t.TempDir())
	require.Error(t, err)
}

func TestEachEventIsInTheQuarterInWhichItWasWritten(t *testing.T) {
	l := &load{every: time.Second}
	for range quarters {
		l.quarters = append(l.quarters, &measure.Measured{})
	}
	const quarter = int64(looks * time.Second)
	l.time([]latency{
		{7, time.Millisecond}, {7 + 4*quarter, 2 * time.Millisecond}, {7 + quarter, 3 * time.Millisecond}, {6 + quarter, 4 * time.Millisecond}, {7 + 2*quarter, 5 * time.Millisecond},
	})
	for i, want := range []float64{4, 3, 5, 2} {
		require.Equal(t, []float64{want}, l.quarters[i].Values[mostLast])
	}
}

func TestDeadRowsAreThoseOfTablesWhoseRowsComeAndGo(t *testing.T) {
	t.Parallel()
	benched(t, data.Settings{}, 0, func(b *Bench) {
		address, err := b.Server.NewRecord(t.Context())
		require.NoError(t, err)
		db := connect(t, address)
		share := func(statements ...string) float64 {
			for _, statement := range append(statements, "SELECT pg_stat_force_next_flush()") {
				_, err := db.Exec(t.Context(), statement)
				require.NoError(t, err)
			}
			into := make(measure.Values)
			require.NoError(t, tables(t.Context(), db, into))
			return into[dead]
		}
		require.Zero(t, share(
			`INSERT INTO kuberewind.heads VALUES (1, 1, 1, 1, '', now(), NULL, NULL, now())`,
			`INSERT INTO kuberewind.exclusions VALUES (1, 1, 'u', 'n', 'n', now())`,
			`DELETE FROM kuberewind.exclusions`,
		), "rows of other tables do not count")
		require.InDelta(t, 50, share(`UPDATE kuberewind.heads SET seq = seq + 1`), 0.001)
	})
}

func TestTimesAreComparedAtARate(t *testing.T) {
	t.Parallel()
	benched(t, data.Settings{Seed: 2, Live: 300, Events: 400}, 0, func(b *Bench) {
		began := time.Now()
		out, err := b.once(t.Context(), recorder, 200)
		require.NoError(t, err)
		require.Len(t, out.Latencies, 400)
		require.GreaterOrEqual(t, out.Took, 399*time.Second/200, "none comes before it is due")
		require.Less(t, out.Took, time.Since(began))
		require.Less(t, percentile(out.Latencies, 0), percentile(out.Latencies, 1))
	})
}
