package parts

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/kuberewind/kuberewind/bench/data"
	"github.com/kuberewind/kuberewind/bench/measure"
)

func TestMain(m *testing.M) {
	if err := Children().Run(context.Background()); !errors.Is(err, measure.ErrNotChild) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

var tiny = Sizes{Operations: 1000, Pods: 100, ReadFor: time.Microsecond, Live: 100, Rows: 500, Held: 200, Stopped: 200, Going: 2 * time.Minute, Grown: 10, Steps: []int{1, 2}, Streams: 2, Largest: 4 << 10, NoSync: true}

// run runs a measure once, so small that its figures say nothing: what is shown is that all ways do what they are compared for.
func run(t *testing.T, do func(context.Context, *measure.Run, Sizes) error) *measure.Report {
	t.Helper()
	r := &measure.Run{Report: &measure.Report{Seed: 1, Versions: measure.Versions()}, Rounds: 1, Log: t.Output()}
	require.NoError(t, do(t.Context(), r, tiny))
	require.NoError(t, r.Report.Table(t.Output()))
	for _, result := range r.Report.Results {
		require.NotEmpty(t, result.Judged)
		for _, way := range result.Ways {
			for quantity, values := range way.Values {
				require.Len(t, values, 1)
				require.GreaterOrEqual(t, values[0], 0.0, "%s of %s", quantity, way.Name)
			}
		}
	}
	return r.Report
}

func TestTheQueueIsMeasuredWithOneAndEightProducers(t *testing.T) {
	t.Parallel()
	require.Len(t, run(t, Queue).Results, 2)
}

func TestTheIndexerIsMeasured(t *testing.T) {
	t.Parallel()
	require.Len(t, run(t, Index).Results, 3)
}

func TestTheSinkIsMeasuredAgainstCopiesOfItsRows(t *testing.T) {
	t.Parallel()
	recording := filepath.Join(t.TempDir(), "set.zst")
	set, err := data.Generate(data.Settings{Seed: 2, Live: 100, Events: 300})
	require.NoError(t, err)
	require.NoError(t, data.Write(recording, set, "v1.37.1"))
	results := run(t, func(ctx context.Context, r *measure.Run, sizes Sizes) error {
		r.Recording = recording
		return Sink(ctx, r, sizes)
	}).Results
	require.Len(t, results, 2)
	require.Equal(t, "sink-recorded", results[1].Name)
}

func TestTheMemoryOfAnObjectIsMeasuredAgainstInformers(t *testing.T) {
	t.Parallel()
	require.Len(t, run(t, Memory).Results, 1)
}

func TestAStartIsMeasuredAgainstARelist(t *testing.T) {
	t.Parallel()
	require.Len(t, run(t, Restart).Results, 1)
}

// One axis of generated data and one of custom resources are measured.
func TestGrowthIsMeasuredOnEachAxis(t *testing.T) {
	t.Parallel()
	all := axes(1, tiny)
	require.Len(t, run(t, func(ctx context.Context, r *measure.Run, sizes Sizes) error {
		return growth(ctx, r, sizes, []axis{all[0], all[2]})
	}).Results, 2)
}

func TestEachAxisGrowsAndNothingElseDoes(t *testing.T) {
	t.Parallel()
	large := tiny
	large.Grown, large.Largest = 2000, 256<<10
	all := axes(1, large)
	type extent struct {
		streams, live, events int
		bytes                 int // of the largest object
	}
	of := func(a axis, size int) (e extent) {
		set, err := a.set(size)
		require.NoError(t, err)
		e.streams = len(set.Resources())
		e.live, e.events = set.Len()
		for o := range set.First() {
			e.bytes = max(e.bytes, len(o.Object))
		}
		return e
	}
	grown := func(a axis) (from, to extent) { return of(a, a.sizes[0]), of(a, a.sizes[1]) }
	from, to := grown(all[0])
	require.Equal(t, extent{from.streams, from.live, 2 * from.events, from.bytes}, to, "deltas")
	from, to = grown(all[1])
	require.Equal(t, []int{from.streams, from.events}, []int{to.streams, to.events}, "live objects")
	require.InEpsilon(t, 2*from.live, to.live, 0.1) // Events expire together, a fifth of what lives
	from, to = grown(all[2])
	require.Equal(t, extent{2 * from.streams, 2 * from.live, 2 * from.events, from.bytes}, to, "streams")
	from, to = grown(all[3])
	require.Equal(t, []int{from.streams, from.live, from.events}, []int{to.streams, to.live, to.events}, "bytes")
	require.InEpsilon(t, large.Largest/(1<<10)*from.bytes, to.bytes, 0.2) // no object is smaller than its metadata
}

func TestARecordIsSizedByWhatTheDataTakes(t *testing.T) {
	t.Parallel()
	const live, events = 200, 3000
	w, err := Weigh(t.Context(), "", 1, live, events)
	require.NoError(t, err)
	require.Equal(t, events, w.Events)
	require.Greater(t, w.Node, w.Lease)
	require.Greater(t, w.Keyframe, w.Lease)
	require.Greater(t, w.PodBytes, w.PodDeltas*100)
	require.InDelta(t, 2, w.LivePerPod, 1)
	var one, two bytes.Buffer
	require.NoError(t, w.Table(&one, Cluster{Nodes: 1}))
	require.Contains(t, one.String(), "Leases of Nodes: 1 × 8,640")
	require.NoError(t, w.Table(&two, Cluster{Nodes: 2, Pods: 10, Replaced: 20, Leaders: 3}))
	require.Contains(t, two.String(), "Leases of leaders: 3 × 43,200")
	t.Log("\n" + two.String())

	_, err = Weigh(t.Context(), "", 1, live, 1)
	require.ErrorContains(t, err, "take more")
}

func TestWhatABenchmarkReportsIsReadByItsUnits(t *testing.T) {
	values, err := reported(strings.Fields("BenchmarkX/y-2 \t 200 \t 12.5 ns/op\t 3 held-B/object\t 16 B/op\t 1 allocs/op"))
	require.NoError(t, err)
	require.Equal(t, map[string]float64{"ns/op": 12.5, "held-B/object": 3, "B/op": 16, "allocs/op": 1}, values)
	for _, line := range []string{"BenchmarkX-2 200", "BenchmarkX-2 200 fast ns/op"} {
		_, err := reported(strings.Fields(line))
		require.Error(t, err)
	}
}
