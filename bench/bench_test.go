package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/kuberewind/kuberewind/bench/measure"
	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/patch"
)

func TestMain(m *testing.M) {
	if err := children().Run(context.Background()); !errors.Is(err, measure.ErrNotChild) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// In the smaller record the last interval is not whole.
var small = Settings{Deltas: []int64{1300, 6000}, Live: 300, Interval: 400}

// onBench measures on a server of the test's own.
func onBench(t *testing.T, s Settings, rounds int, do func(*bench)) {
	t.Helper()
	require.NoError(t, measure.OnServer(t.Context(), measure.ServerOptions{}, func(server *measure.Server) error {
		do(&bench{Settings: s, server: server, Run: &measure.Run{Report: &measure.Report{Seed: 1}, Rounds: rounds, Log: t.Output()}})
		return nil
	}))
}

// The run compares the answers itself. TestAnAnswerThatDiffersEndsTheRun shows that it finds a difference.
func TestACostRunOfASmallRecordGivesTheSameAnswersInEveryWay(t *testing.T) {
	t.Parallel()
	var b *bench
	onBench(t, small, 2, func(on *bench) {
		b = on
		require.NoError(t, b.run(t.Context()))
	})
	require.NoError(t, b.Report.Table(t.Output()))

	results := make(map[string]*measure.Result)
	for _, r := range b.Report.Results {
		results[r.Name] = r
		require.Contains(t, r.Data, "128MB of shared buffers")
	}
	require.Len(t, results, 6)
	values := func(experiment string, way int, quantity string) []float64 {
		return results[experiment].Ways[way].Values[quantity]
	}
	require.Len(t, results["rebuild"].Ways, 8)
	require.Len(t, values("rebuild", 0, onTheClock), 2)
	require.Len(t, results["rebuild"].Judged, 8)
	require.Equal(t, values("rebuild-size", 0, inTail), values("rebuild-size", 1, inTail), "round by round, whatever the size")
	for i := range small.Deltas {
		require.ElementsMatch(t, []float64{33, 100, 166, 233, 300, 366}, values("rebuild-size", i, inTail))
		require.InDelta(t, small.Live, values("rebuild-memory", i, "objects")[0], float64(small.Live)/5)
		require.Greater(t, values("rebuild-memory", i, "process at its peak")[0], values("rebuild-memory", i, "heap of a snapshot")[0])
		require.Positive(t, values("rebuild-disk", i, "checkpoints")[0])
		require.Len(t, values("rebuild-object", i, objectInSQL), 2)
	}
	require.Greater(t, values("rebuild-object", 1, "versions")[0], 40.0)
	require.Greater(t, values("rebuild-checkpoints", 0, "checkpoints")[0], values("rebuild-checkpoints", 2, "checkpoints")[0])
	for i, interval := range []float64{200, 400, 800} {
		require.ElementsMatch(t, []float64{interval / 8, interval * 3 / 8, interval * 5 / 8, interval * 7 / 8}, values("rebuild-checkpoints", i, inTail))
	}
}

func TestInstantsAreAsFarAfterTheirCheckpointsInAllRecordsAndStayWhenARunGoesOn(t *testing.T) {
	const rounds, live, interval = 15, 100, 60
	of := func(seed uint64) (*bench, func(round int) instant) {
		b := &bench{Settings: Settings{Live: live, Interval: interval}, Run: &measure.Run{Report: &measure.Report{Seed: seed}}}
		return b, b.instants(rounds)
	}
	b, at := of(1)
	_, again := of(1)
	_, other := of(2)
	smaller, larger := &record{deltas: live + rounds*interval + interval - 1}, &record{deltas: live + 1000*interval}
	var phases, intervals, want, differ []int64
	for round := range rounds {
		require.Equal(t, at(round), again(round))
		if at(round) != other(round) {
			differ = append(differ, int64(round))
		}
		seq := b.seqAt(smaller, interval, at(round)) - live
		phases, intervals = append(phases, seq%interval), append(intervals, seq/interval)
		require.Equal(t, seq%interval, (b.seqAt(larger, interval, at(round))-live)%interval)
		want = append(want, interval/rounds*int64(round)+interval/rounds/2)
	}
	require.ElementsMatch(t, want, phases)
	require.NotEqual(t, want, phases, "no order")
	require.ElementsMatch(t, []int64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14}, intervals, "the last one, which is not whole, is left out")
	require.NotEmpty(t, differ)
	require.Equal(t, int64(live+7*interval+interval/2), b.seqAt(smaller, interval, at(-1)))
}

func TestAnAnswerThatDiffersEndsTheRun(t *testing.T) {
	t.Parallel()
	onBench(t, Settings{Deltas: []int64{600, 1200}, Live: 100, Interval: 100}, 1, func(b *bench) {
		defer b.close()
		require.NoError(t, b.prepare(t.Context()))
		r := b.records[1]
		exec := func(statements ...string) {
			for _, s := range statements {
				_, err := r.pool.Exec(t.Context(), s)
				require.NoError(t, err)
			}
		}
		turn := func() error {
			if _, err := b.rebuild(t.Context(), r, 1200, history.RebuildOptions{}); err != nil {
				return err
			}
			for _, p := range plains {
				if _, _, err := b.measured(r, 1200, string(p), func() (built, error) { return fromFullRows(t.Context(), r.pool, p, 1200) }); err != nil {
					return err
				}
			}
			return nil
		}
		for name, damage := range map[string]string{
			"another value": `UPDATE bench.full_rows SET object = jsonb_set(object, '{metadata,name}', '"x"') WHERE seq = (SELECT max(seq) FROM bench.full_rows WHERE type = 'Updated')`,
			"another name":  `UPDATE bench.full_rows SET name = 'x' WHERE seq = (SELECT max(seq) FROM bench.full_rows WHERE type = 'Updated')`,
			"one more":      `UPDATE bench.full_rows SET type = 'Updated' WHERE seq = (SELECT max(seq) FROM bench.full_rows WHERE type = 'Deleted')`,
		} {
			t.Run(name, func(t *testing.T) {
				require.NoError(t, turn())
				exec(`CREATE TABLE bench.sound AS TABLE bench.full_rows`, damage)
				require.ErrorIs(t, turn(), errDiffers)
				exec(`TRUNCATE bench.full_rows`, `INSERT INTO bench.full_rows TABLE bench.sound`, `DROP TABLE bench.sound`)
			})
		}
	})
}

func TestFullRowsAreTakenAsTheyComeAndPlannedForEachInstant(t *testing.T) {
	t.Parallel()
	onBench(t, Settings{Deltas: []int64{600, 1200}, Live: 100, Interval: 100}, 1, func(b *bench) {
		defer b.close()
		require.NoError(t, b.prepare(t.Context()))
		pool := b.records[0].pool
		require.EqualValues(t, 1, pool.Stat().TotalConns(), "all is asked on one connection")
		way, err := fromFullRows(t.Context(), pool, plains[0], 600)
		require.NoError(t, err)
		require.Positive(t, way.snapshot.Len())
		for item := range way.snapshot.All() {
			require.Contains(t, string(item.Doc), `": `, "the server's spelling, which is not canonical")
		}
		conn, err := pool.Acquire(t.Context())
		require.NoError(t, err)
		defer conn.Release()
		var prepared int
		require.NoError(t, conn.QueryRow(t.Context(), `SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE $1`, "%FROM bench.full_rows%ORDER BY%").Scan(&prepared))
		require.Zero(t, prepared, "a prepared statement may get one plan for all instants")
	})
}

func TestAFleetIsObservedAtEvenDistances(t *testing.T) {
	const deltas = 2000
	f, err := newFleet(1, 400, deltas, deltas)
	require.NoError(t, err)
	defer f.stop()
	living := make(map[string]int64)
	see := func(c change) {
		require.Equal(t, f.seq, c.seq)
		require.Equal(t, f.at(c.seq), c.observed)
		id, lives := living[c.uid]
		require.Equal(t, c.action == delta.Updated || c.action == delta.Deleted, lives)
		if !lives {
			id = c.seq
		}
		require.Equal(t, id, c.objectID)
		if living[c.uid] = id; c.action == delta.Deleted {
			delete(living, c.uid)
		}
		rv, _ := patch.Get(c.doc, "/metadata/resourceVersion")
		require.Equal(t, `"`+c.rv+`"`, string(rv))
	}
	first, err := f.first()
	require.NoError(t, err)
	for i, c := range first {
		require.Equal(t, int64(i+1), c.seq)
		living[c.uid] = c.seq
	}
	require.Len(t, living, int(f.live))
	for f.seq < deltas {
		c, err := f.next()
		require.NoError(t, err)
		see(c)
	}
	require.Equal(t, begin.Add(24*time.Hour), f.at(deltas))
}

func TestSettingsThatMakeNoSenseAreRefused(t *testing.T) {
	for _, s := range []Settings{
		{Deltas: []int64{1000}, Live: 200}, {Deltas: []int64{1000, 500}, Live: 200}, {Deltas: []int64{1000, 2000}, Live: 1}, {Deltas: []int64{1000, 2000}, Live: 900},
		{Deltas: []int64{1000, 2000}, Live: 200, Interval: 600},
	} {
		require.Error(t, (&bench{Settings: s, Run: &measure.Run{Report: new(measure.Report)}}).run(t.Context()), s)
	}
}
