package main

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/pgtest"
	"github.com/kuberewind/kuberewind/patch"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

var small = Settings{Deltas: []int64{3000, 30_000}, Live: 500, Versions: 1000, Interval: 2000, Instants: 2}

// The answers are compared by the run itself; TestAnAnswerThatDiffersEndsTheRun shows that it would tell.
func TestACostRunOfASmallRecordGivesTheSameAnswersInEveryWay(t *testing.T) {
	db := pgtest.New(t, nil)
	b := &bench{Settings: small, url: db.URL(), log: t.Output()}
	require.NoError(t, b.run(t.Context()))

	require.Len(t, b.report.Records, 2)
	for i, r := range b.report.Records {
		require.Equal(t, small.Deltas[i], r.Deltas)
		require.InDelta(t, small.Live, r.Objects, 3)
		require.Len(t, r.Rebuild.Wall, 6)
		require.Len(t, r.NoCheckpoint.Wall, 2)
		require.Len(t, r.ObjectAt, 2)
		require.Less(t, median(r.Tail), 2*small.Interval, "checkpoints are used")
		require.Positive(t, r.Sizes.Checkpoints)
	}
	require.Equal(t, 1000, b.report.Records[1].Versions)
	require.Len(t, b.report.Intervals, 3)
	require.Greater(t, b.report.Intervals[0].Checkpoints, b.report.Intervals[2].Checkpoints)
	require.Len(t, b.report.Ratios, 3)

	var table, text bytes.Buffer
	require.NoError(t, b.report.table(&table))
	t.Log("\n" + table.String())
	require.NoError(t, b.report.json(&text))
	require.True(t, json.Valid(text.Bytes()))
}

func TestAnAnswerThatDiffersEndsTheRun(t *testing.T) {
	db := pgtest.New(t, nil)
	b := &bench{Settings: Settings{Deltas: []int64{300, 600}, Live: 50, Versions: 20, Interval: 100, Instants: 1}, url: db.URL(), log: t.Output()}
	require.NoError(t, b.run(t.Context()))

	pool := db.Pool(t)
	rec, err := history.Open(t.Context(), db.URL(), history.Options{})
	require.NoError(t, err)
	defer rec.Close()
	r := &record{pool: pool, history: rec}
	for name, damage := range map[string]string{
		"another value": `UPDATE bench.full_rows SET object = jsonb_set(object, '{metadata,name}', '"x"') WHERE seq = (SELECT max(seq) FROM bench.full_rows WHERE type = 'Updated')`,
		"one more":      `UPDATE bench.full_rows SET type = 'Updated' WHERE seq = (SELECT max(seq) FROM bench.full_rows WHERE type = 'Deleted')`,
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, b.turn(t.Context(), r, 600, &RecordResult{}))
			db.Exec(t, `CREATE TABLE bench.sound AS TABLE bench.full_rows`, damage)
			require.ErrorIs(t, b.turn(t.Context(), r, 600, &RecordResult{}), errDiffers)
			db.Exec(t, `TRUNCATE bench.full_rows`, `INSERT INTO bench.full_rows TABLE bench.sound`, `DROP TABLE bench.sound`)
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

func TestARequiredRatioThatDoesNotHoldIsToldAndCounts(t *testing.T) {
	times := func(all ...time.Duration) Cost { return Cost{Wall: all} }
	report := func(smaller, larger time.Duration) *Report {
		r := &Report{Records: []*RecordResult{
			{Rebuild: times(100, smaller, 900), DistinctOn: [2]Cost{times(4 * smaller), times(3 * smaller)}},
			{Rebuild: times(larger), DistinctOn: [2]Cost{times(9 * larger), times(8 * larger)}},
		}}
		r.judge()
		return r
	}
	require.True(t, report(200, 260).holds())
	worse := report(200, 261)
	require.False(t, worse.holds())
	require.InDelta(t, 3, worse.Ratios[1].Value, 0.001, "the faster spelling and the median count")
	var out bytes.Buffer
	require.NoError(t, worse.table(&out))
	require.Contains(t, out.String(), "rebuild: largest record to smallest: 1.30, at most 1.3: DOES NOT HOLD")
	require.False(t, (&Report{}).holds(), "nothing was measured")
}

func TestSettingsThatMakeNoSenseAreRefused(t *testing.T) {
	for _, args := range [][]string{
		{"-deltas", "100"}, {"-deltas", "x,y"}, {"-deltas", "20,10"}, {"-live", "1"}, {"-deltas", "100,200", "-live", "90"}, {"-instants", "0"},
		{"-versions", "1"}, {"-o", "xml"}, {"more"},
	} {
		require.Error(t, rebuildCommand(t.Context(), args, t.Output(), t.Output()), args)
	}
}
