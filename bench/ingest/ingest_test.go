package ingest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/bench/data"
	"github.com/kuberewind/kuberewind/bench/measure"
	"github.com/kuberewind/kuberewind/internal/recordertest"
)

func benched(t *testing.T, s data.Settings, do func(*Bench)) {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, measure.OnServer(t.Context(), serverOptions, func(server *measure.Server) error {
		do(&Bench{Source: data.Source{Settings: s}, Server: server, Recorder: recordertest.Program("recorder"), Dir: dir})
		return nil
	}))
}

func TestEachWayHasEachEventOnRecord(t *testing.T) {
	t.Parallel()
	const events = 1500
	benched(t, data.Settings{Seed: 2, Live: 300, Events: events}, func(b *Bench) {
		for _, w := range []way{recorder, byCopy, byInsert, watching} {
			t.Run(w.String(), func(t *testing.T) {
				out, err := b.once(t.Context(), w, 0, true)
				require.NoError(t, err)
				require.Len(t, out.Latencies, events)
				require.Positive(t, out.Latencies[0])
				if w == watching {
					return
				}
				require.Positive(t, out.Took)
				require.Greater(t, out.Took+time.Second, out.Latencies[len(out.Latencies)-1])
				require.Positive(t, out.After.Rows.minus(out.Before.Rows).Heap)
				require.Greater(t, out.After.WAL, out.Before.WAL)
				require.Equal(t, w == recorder, out.Sweep.Rows.Heap > 0)
				require.Equal(t, w == recorder, out.Checkpoint.Checkpoints.Toast > 0)
				require.Equal(t, w == recorder, out.values()[cpuUpkeep] > 0)
				for _, name := range []string{speed, disk, logged, memory, ofAdded, ofUpdated, ofDeleted} {
					require.Positive(t, out.values()[name], name)
				}
			})
		}
	})
}

func TestASweepIsChargedOnceInEachDayOfTheData(t *testing.T) {
	o := Outcome{Events: 1000, Took: time.Second, Span: 6 * time.Hour, Swept: 40, SweepCPU: 8 * time.Millisecond}
	o.Sweep.Rows.Heap, o.Sweep.WAL = 80_000, 100_000
	v := o.values()
	require.InDelta(t, 20, v[sweeping], 0.001)
	require.InDelta(t, 20, v[disk], 0.001)
	require.InDelta(t, 25, v[logged], 0.001)
	require.InDelta(t, 2, v[cpuUpkeep], 0.001)
	require.InDelta(t, 2, v[cpuAll], 0.001)
	require.InDelta(t, 2000, v[swept], 0.001)
}

func TestEachDeltaIsInACheckpointOnce(t *testing.T) {
	o := Outcome{Events: 1000, Live: 500, Took: time.Second, Postgres: 7 * time.Millisecond, Pointing: 3 * time.Millisecond, CheckpointCPU: 1500 * time.Microsecond}
	v := o.values()
	require.InDelta(t, 4, v[cpuServer], 0.001)
	require.InDelta(t, 3, v[cpuUpkeep], 0.001, "of 1,500 deltas, with the first lists")
	require.InDelta(t, 7, v[cpuAll], 0.001)
}

func TestARecorderUnderLoadIsLookedAt(t *testing.T) {
	t.Parallel()
	run := &measure.Run{Report: &measure.Report{Seed: 2}, Log: t.Output(), LoadFor: 3 * time.Second, LoadRate: 100}
	benched(t, data.Settings{}, func(b *Bench) { require.NoError(t, b.load(t.Context(), run, 300)) })
	require.NoError(t, run.Report.Table(t.Output()))
	result := run.Report.Results[0]
	require.Len(t, result.Judged, 4)
	require.Len(t, result.Ways, quarters)
	for _, quarter := range result.Ways {
		for _, q := range result.Quantities {
			require.Len(t, quarter.Values[q.Name], looks, "%s of %s", q.Name, quarter.Name)
		}
		require.Greater(t, quarter.Values[resident][0], 10.0)
		require.Greater(t, quarter.Values[goroutines][0], 10.0)
		require.Greater(t, quarter.Values[updated][0], 8.0)
		require.Greater(t, quarter.Values[eachDelta][0], 100.0)
	}
	_, err := addressIn(t.TempDir())
	require.Error(t, err)
}

func TestTimesAreComparedAtARate(t *testing.T) {
	t.Parallel()
	benched(t, data.Settings{Seed: 2, Live: 300, Events: 400}, func(b *Bench) {
		began := time.Now()
		out, err := b.once(t.Context(), recorder, 200, false)
		require.NoError(t, err)
		require.Len(t, out.Latencies, 400)
		require.GreaterOrEqual(t, out.Took, 399*time.Second/200, "none comes before it is due")
		require.Less(t, out.Took, time.Since(began))
		require.Less(t, percentile(out.Latencies, 0), percentile(out.Latencies, 1))
	})
}
