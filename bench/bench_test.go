package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/bench/measure"
	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/pgtest"
	"github.com/kuberewind/kuberewind/patch"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

func TestMain(m *testing.M) {
	if err := children().Run(context.Background()); !errors.Is(err, measure.ErrNotChild) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	pgtest.Main(m)
}

var small = Settings{Deltas: []int64{1000, 6000}, Live: 300, Interval: 400}

// newBench measures on a database of a test. The server's process is not known: this one stands for it.
func newBench(t *testing.T, s Settings, rounds int) *bench {
	return &bench{
		Settings: s, url: pgtest.New(t, nil).URL(), postmaster: os.Getpid(), peak: peakOfChild,
		Run: &measure.Run{Report: new(measure.Report), Rounds: rounds, Log: t.Output()},
	}
}

// The answers are compared by the run itself; TestAnAnswerThatDiffersEndsTheRun shows that it would tell.
func TestACostRunOfASmallRecordGivesTheSameAnswersInEveryWay(t *testing.T) {
	t.Parallel()
	b := newBench(t, small, 2)
	require.NoError(t, b.run(t.Context()))
	require.NoError(t, b.Report.Table(t.Output()))

	results := make(map[string]*measure.Result)
	for _, r := range b.Report.Results {
		results[r.Name] = r
	}
	require.Len(t, results, 6)
	values := func(experiment string, way int, quantity string) []float64 {
		return results[experiment].Ways[way].Values[quantity]
	}
	require.Len(t, results["rebuild"].Ways, 8)
	require.Len(t, values("rebuild", 0, onTheClock), 2)
	require.Len(t, results["rebuild"].Judged, 8)
	for i := range small.Deltas {
		require.Len(t, values("rebuild-size", i, inTail), 6)
		require.Less(t, measure.Median(values("rebuild-size", i, inTail)), 2.0*float64(small.Interval), "checkpoints are used")
		require.InDelta(t, small.Live, values("rebuild-memory", i, "objects")[0], float64(small.Live)/5)
		require.Greater(t, values("rebuild-memory", i, "process at its peak")[0], values("rebuild-memory", i, "heap of a snapshot")[0])
		require.Positive(t, values("rebuild-disk", i, "checkpoints")[0])
		require.Len(t, values("rebuild-object", i, objectInSQL), 2)
	}
	require.Greater(t, values("rebuild-object", 1, "versions")[0], 40.0)
	require.Greater(t, values("rebuild-checkpoints", 0, "checkpoints")[0], values("rebuild-checkpoints", 2, "checkpoints")[0])
}

func TestAnAnswerThatDiffersEndsTheRun(t *testing.T) {
	t.Parallel()
	b := newBench(t, Settings{Deltas: []int64{600, 1200}, Live: 100, Interval: 100}, 1)
	defer func() { require.NoError(t, b.close()) }()
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
			if _, _, err := b.measured(r, 1200, p.name, func() (built, error) { return fromFullRows(t.Context(), r.pool, p, 1200) }); err != nil {
				return err
			}
		}
		return nil
	}
	for name, damage := range map[string]string{
		"another value": `UPDATE bench.full_rows SET object = jsonb_set(object, '{metadata,name}', '"x"') WHERE seq = (SELECT max(seq) FROM bench.full_rows WHERE type = 'Updated')`,
		"one more":      `UPDATE bench.full_rows SET type = 'Updated' WHERE seq = (SELECT max(seq) FROM bench.full_rows WHERE type = 'Deleted')`,
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, turn())
			exec(`CREATE TABLE bench.sound AS TABLE bench.full_rows`, damage)
			require.ErrorIs(t, turn(), errDiffers)
			exec(`TRUNCATE bench.full_rows`, `INSERT INTO bench.full_rows TABLE bench.sound`, `DROP TABLE bench.sound`)
		})
	}
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
		require.Equal(t, c.action == postgres.Updated || c.action == postgres.Deleted, lives)
		if !lives {
			id = c.seq
		}
		require.Equal(t, id, c.objectID)
		if living[c.uid] = id; c.action == postgres.Deleted {
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
	} {
		require.Error(t, (&bench{Settings: s, Run: &measure.Run{Report: new(measure.Report)}}).run(t.Context()), s)
	}
}
