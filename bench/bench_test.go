package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
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

var small = Settings{Deltas: []int64{3000, 30_000}, Live: 500, Versions: 1000, Interval: 2000}

// newBench measures on a database of a test. The server's process is not known: this one stands for it.
func newBench(t *testing.T, s Settings, rounds int) *bench {
	return &bench{
		Settings: s, url: pgtest.New(t, nil).URL(), postmaster: os.Getpid(), peak: peakOfChild,
		Run: &measure.Run{Report: new(measure.Report), Rounds: rounds, Log: t.Output()},
	}
}

// The answers are compared by the run itself; TestAnAnswerThatDiffersEndsTheRun shows that it would tell.
func TestACostRunOfASmallRecordGivesTheSameAnswersInEveryWay(t *testing.T) {
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
		require.InDelta(t, small.Live, values("rebuild-memory", i, "objects")[0], 3)
		require.Greater(t, values("rebuild-memory", i, "process at its peak")[0], values("rebuild-memory", i, "heap of a snapshot")[0])
		require.Positive(t, values("rebuild-disk", i, "checkpoints")[0])
		require.Len(t, values("rebuild-object", i, objectInSQL), 2)
	}
	require.InDelta(t, 1000, values("rebuild-object", 1, "versions")[0], 0)
	require.Greater(t, values("rebuild-checkpoints", 0, "checkpoints")[0], values("rebuild-checkpoints", 2, "checkpoints")[0])
}

func TestAnAnswerThatDiffersEndsTheRun(t *testing.T) {
	b := newBench(t, Settings{Deltas: []int64{300, 600}, Live: 50, Versions: 20, Interval: 100}, 1)
	require.NoError(t, b.run(t.Context()))

	pool, err := pgxpool.New(t.Context(), b.url)
	require.NoError(t, err)
	defer pool.Close()
	rec, err := history.Open(t.Context(), b.url, history.Options{})
	require.NoError(t, err)
	defer rec.Close()
	r := &record{deltas: 600, pool: pool, history: rec}
	exec := func(statements ...string) {
		for _, s := range statements {
			_, err := pool.Exec(t.Context(), s)
			require.NoError(t, err)
		}
	}
	turn := func() error {
		if _, err := b.rebuild(t.Context(), r, 600, history.RebuildOptions{}); err != nil {
			return err
		}
		for _, p := range plains {
			if _, _, err := b.measured(r, 600, p.name, func() (built, error) { return fromFullRows(t.Context(), pool, p, 600) }); err != nil {
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

func TestTheFleetKeepsItsSizeAndIsOneThatAnAPIServerCouldServe(t *testing.T) {
	const live, deltas = 400, 20_000
	f, err := newFleet(live, deltas, 100, deltas)
	require.NoError(t, err)
	counts := make(map[string]int)
	rvs := make(map[string]string) // of what lives, by UID
	versions, bytesOfPods, versionsOfPods := 0, 0, 0
	see := func(c change) {
		doc, err := patch.Canonical(c.doc)
		require.NoError(t, err)
		require.Equal(t, string(doc), string(c.doc), "texts are canonical without being made so")
		for path, want := range map[string]string{"name": c.name, "namespace": c.namespace, "uid": c.uid, "resourceVersion": c.rv} {
			got, _ := patch.Get(doc, "/metadata/"+path)
			require.Equal(t, `"`+want+`"`, string(got))
		}
		counts[c.action]++
		_, lives := rvs[c.uid]
		require.Equal(t, c.action == postgres.Updated || c.action == postgres.Deleted, lives)
		if rvs[c.uid] = c.rv; c.action == postgres.Deleted {
			delete(rvs, c.uid)
		}
		if c.objectID == f.watched.id {
			versions++
		}
		if c.kind == pods {
			bytesOfPods, versionsOfPods = bytesOfPods+len(doc), versionsOfPods+1
		}
	}
	for _, c := range f.first() {
		see(c)
	}
	require.Len(t, rvs, live)
	for f.seq < deltas {
		see(f.next())
		require.InDelta(t, live, len(rvs), 2)
	}
	require.Equal(t, live, counts[postgres.Sync])
	require.InDelta(t, 0.15, float64(counts[postgres.Added]+counts[postgres.Deleted])/deltas, 0.01)
	require.Equal(t, 100, versions)
	require.InDelta(t, 6000, bytesOfPods/versionsOfPods, 1000)
	require.Equal(t, begin.Add(24*time.Hour), f.at(deltas))
}

func TestSettingsThatMakeNoSenseAreRefused(t *testing.T) {
	for _, s := range []Settings{
		{Deltas: []int64{100}, Live: 20, Versions: 2}, {Deltas: []int64{100, 50}, Live: 20, Versions: 2}, {Deltas: []int64{100, 200}, Live: 1, Versions: 2},
		{Deltas: []int64{100, 200}, Live: 90, Versions: 2}, {Deltas: []int64{100, 200}, Live: 20, Versions: 1},
	} {
		require.Error(t, (&bench{Settings: s}).run(t.Context()), s)
	}
}
