package bounds

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kuberewind/kuberewind/internal/times"
	"github.com/kuberewind/kuberewind/patch"
)

var noon = time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)

func at(seconds float64) time.Time { return noon.Add(time.Duration(seconds * float64(time.Second))) }

// pauseOf draws a pause: the true time of each delta, and what the record knows about it. The clocks agree.
func pauseOf(t *rapid.T) (truth []time.Time, deltas []Delta) {
	length := rapid.IntRange(1, 120_000).Draw(t, "length of the pause in ms")
	milliseconds := func(label string, low, high int) time.Time {
		return noon.Add(time.Duration(rapid.IntRange(low, high).Draw(t, label)) * time.Millisecond)
	}
	rv := uint64(100)
	for range rapid.IntRange(1, 30).Draw(t, "deltas") {
		truth = append(truth, milliseconds("truth", 0, length))
	}
	slices.SortFunc(truth, time.Time.Compare)
	for _, happened := range truth {
		rv += rapid.Uint64Range(1, 5).Draw(t, "step")
		d := Delta{RV: rv, Estimate: milliseconds("estimate", 0, length), Observed: times.Later(happened, milliseconds("observed", length, length+5000))}
		if rapid.Bool().Draw(t, "proved") {
			d.Proved = happened.Truncate(time.Second)
			d.Estimate = times.Later(d.Proved, noon)
		}
		deltas = append(deltas, d)
	}
	return truth, deltas
}

func TestBoundsContainTheTruthIfClocksAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		truth, deltas := pauseOf(t)
		mixed := rapid.Permutation(indices(len(deltas))).Draw(t, "order served")
		served := make([]Delta, len(deltas))
		for n, i := range mixed {
			served[n] = deltas[i]
		}
		last := make([]time.Time, len(deltas))
		for n, s := range Spans(noon, served) {
			i := mixed[n]
			require.False(t, s.Contradictory, "delta %d", i)
			require.False(t, truth[i].Before(s.NotBefore), "delta %d happened at %s, not before %s", i, truth[i], s.NotBefore)
			require.False(t, truth[i].After(s.NotAfter), "delta %d happened at %s, not after %s", i, truth[i], s.NotAfter)
			require.False(t, s.Estimate.Before(s.NotBefore) || s.Estimate.After(s.NotAfter), "delta %d is estimated outside of its bounds", i)
			last[i] = s.Estimate
		}
		for i := range deltas {
			for j := range i {
				if !deltas[i].Proved.IsZero() || !deltas[j].Proved.IsZero() {
					require.False(t, last[i].Before(last[j]), "delta %d is shown before delta %d, and one of them is proved", i, j)
				}
			}
		}
	})
}

func indices(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

func TestAnEstimateBoundsNoOtherDelta(t *testing.T) {
	spans := Spans(noon, []Delta{
		{RV: 1, Observed: at(60), Estimate: at(50)},
		{RV: 2, Observed: at(60), Estimate: at(10)},
	})
	require.Equal(t, []Span{
		{NotBefore: noon, NotAfter: at(60), Estimate: at(50)},
		{NotBefore: noon, NotAfter: at(60), Estimate: at(10)},
	}, spans)
}

func TestTheObservedTimeOfALaterDeltaBoundsEarlierDeltas(t *testing.T) {
	spans := Spans(noon, []Delta{
		{RV: 1, Observed: at(70), Estimate: at(65)},
		{RV: 2, Observed: at(60), Estimate: at(60)}, // live, of another stream
	})
	require.Equal(t, Span{NotBefore: noon, NotAfter: at(60), Estimate: at(60)}, spans[0])
}

func TestASpanIsContradictoryIfClocksContradictEachOther(t *testing.T) {
	deltas := []Delta{
		{RV: 1, Observed: at(60), Estimate: at(40), Proved: at(40)}, // proved by a server whose clock is ahead
		{RV: 2, Observed: at(60), Estimate: at(55)},
		{RV: 3, Observed: at(60), Estimate: at(30), Proved: at(30)},
		{RV: 4, Observed: at(60), Estimate: at(5)},
	}
	spans := Spans(noon, deltas)
	for i := range 3 {
		require.Equal(t, Span{NotBefore: noon, NotAfter: at(60), Estimate: deltas[i].Estimate, Contradictory: true}, spans[i], "delta %d", i)
	}
	require.Equal(t, Span{NotBefore: at(40), NotAfter: at(60), Estimate: at(40)}, spans[3], "no bound contradicts the last delta")
}

func TestATimeAfterTheObservedTimeProvesNothing(t *testing.T) {
	spans := Spans(noon, []Delta{
		{RV: 1, Observed: at(60), Estimate: at(60), Proved: at(3600)},
		{RV: 2, Observed: at(60), Estimate: at(20)},
	})
	require.Equal(t, Span{NotBefore: noon, NotAfter: at(60), Estimate: at(20)}, spans[1])
}

func TestOnlyATimeThatAVersionSetProvesItsTime(t *testing.T) {
	const (
		created = `"creationTimestamp":"2026-03-10T12:00:01Z"`
		early   = `{"manager":"a","time":"2026-03-10T12:00:05Z"}`
		late    = `{"manager":"b","time":"2026-03-10T12:00:07Z"}`
		scale   = `{"manager":"s","subresource":"scale"}`
		ending  = `"deletionTimestamp":"2026-03-10T12:00:40Z","deletionGracePeriodSeconds":30`
	)
	for name, c := range map[string]struct {
		before, after string // members of metadata
		want          time.Time
	}{
		"a new entry":                       {created, created + `,"managedFields":[` + early + `]`, at(5)},
		"a later entry":                     {`"managedFields":[` + early + `]`, `"managedFields":[` + early + `,` + late + `]`, at(7)},
		"no change of entries":              {`"managedFields":[` + late + `]`, `"managedFields":[` + late + `]`, time.Time{}},
		"an entry that vanished":            {`"managedFields":[` + early + `,` + late + `]`, `"managedFields":[` + early + `]`, time.Time{}},
		"an earlier time that was put back": {`"managedFields":[` + late + `]`, `"managedFields":[` + late + `,` + early + `]`, time.Time{}},
		"an entry without a time":           {`"managedFields":[` + late + `]`, `"managedFields":[` + late + `,` + scale + `]`, time.Time{}},
		"a request to delete":               {created, created + `,` + ending, at(10)},
		"a request made before":             {created + `,` + ending, created + `,` + ending, time.Time{}},
		"metadata that cannot be read":      {`"managedFields":7`, `"managedFields":"x"`, time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			require.True(t, c.want.Equal(Changed(object(c.before), object(c.after))), "%s", Changed(object(c.before), object(c.after)))
		})
	}
	require.True(t, at(1).Equal(Created(object(created+`,"managedFields":[`+late+`]`))), "a first version proves when it was created")
	require.Zero(t, Created(object(`"name":"x"`)))
}

func object(metadata string) patch.Doc { return patch.Doc(`{"metadata":{` + metadata + `}}`) }
