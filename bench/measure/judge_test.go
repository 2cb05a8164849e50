package measure

import (
	"context"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

// of is a way that was measured.
func of(name string, factor float64, values ...float64) *Measured {
	return &Measured{Name: name, Factor: factor, Values: map[string][]float64{"speed": values}}
}

func TestAJudgementHasTheRangeOfSingleRounds(t *testing.T) {
	r := &Result{Rounds: 5, Ways: []*Measured{of("1×", 1, 10, 10, 10, 10, 10), of("2×", 2, 20, 20, 20, 20, 20), of("4×", 4, 40, 20, 30, 80, 40)}}
	r.Again = of("again", 0, 10, 11, 10, 9, 10)
	require.NoError(t, r.judge(nil, []Growth{{What: "cost", Quantity: "speed"}}))
	exponent, step := r.Judged[0], r.Judged[1]
	require.InDelta(t, 1, exponent.Value, 1e-9)
	require.InDelta(t, 0.5, exponent.Low, 1e-9, "in the second round it doubles while the size grows fourfold")
	require.InDelta(t, 1.5, exponent.High, 1e-9, "in the fourth it grows eightfold")
	require.InDelta(t, 1, step.Value, 1e-9)

	r = &Result{Rounds: 3, Ways: []*Measured{of("1×", 1, 10, 10, 10), of("2×", 2, 10, 10, 10), of("4×", 4, 60, 80, 20)}, Again: r.Again}
	require.NoError(t, r.judge(nil, []Growth{{What: "cost", Quantity: "speed"}}))
	step = r.Judged[1]
	require.Equal(t, "cost: largest step, 2× to 4×", step.What)
	require.InDelta(t, 3, step.Value, 1e-9)
	require.InDelta(t, 1, step.Low, 1e-9)
	require.InDelta(t, 4, step.High, 1e-9)
	r.Ways[0].Values["speed"][1] = 0
	require.NoError(t, r.judge(nil, []Growth{{What: "cost", Quantity: "speed"}}))
	require.True(t, r.Judged[2].Unpaired, "nothing grows from 0")
	require.NoError(t, (&Report{Results: []*Result{r}}).JSON(io.Discard))
}

func TestAWayThatRunsOnceCountsInEveryRound(t *testing.T) {
	r := &Result{Rounds: 3, Ways: []*Measured{of("ours", 0, 30, 20, 40), of("theirs", 0, 10), of("odd", 0, 10, 20), of("idle", 0, 1, 0, 1)}}
	require.NoError(t, r.judge([]Comparison{
		{Quantity: "speed", Of: "ours", To: "theirs"}, {Quantity: "speed", Of: "theirs", To: "ours", By: Difference},
		{Quantity: "speed", Of: "ours", To: "odd"}, {Quantity: "speed", Of: "ours", To: "idle"},
	}, nil))
	for i, expected := range []Judgement{{Value: 3, Low: 2, High: 4}, {Value: -20, Low: -30, High: -10}} {
		require.InDelta(t, expected.Value, r.Judged[i].Value, 1e-9)
		require.InDelta(t, expected.Low, r.Judged[i].Low, 1e-9)
		require.InDelta(t, expected.High, r.Judged[i].High, 1e-9)
		require.False(t, r.Judged[i].Unpaired)
	}
	require.True(t, r.Judged[2].Unpaired, "whose two rounds they are is not known")
	require.True(t, r.Judged[3].Unpaired, "nothing can be divided by 0")
	require.NoError(t, (&Report{Results: []*Result{r}}).JSON(io.Discard))
	require.Contains(t, r.judgements()[3], "2× (–)")
}

func TestLooksAreNoRoundsAndHaveAFloorOfTheirOwn(t *testing.T) {
	look := func(second, last []float64, c Comparison) (*Judgement, grid) {
		run := &Run{Report: new(Report), Rounds: 5, Log: t.Output()}
		c.Quantity, c.Of, c.To = "speed", "last", "second"
		require.NoError(t, run.DoOnce(t.Context(), Experiment{Name: "soak", Quantities: []Quantity{{Name: "speed", Unit: "MiB"}}, Compare: []Comparison{c}},
			func(context.Context) ([]*Measured, error) {
				return []*Measured{of("second", 0, second...), of("last", 0, last...)}, nil
			}))
		return run.Report.Results[0].Judged[0], run.Report.Results[0].judgements()
	}
	still := []float64{100, 100, 100, 100, 100, 100, 100}
	rough := []float64{70, 80, 90, 100, 110, 120, 130}
	j, shown := look(still, still, Comparison{AtMost: 1.1})
	require.Equal(t, Holds, j.Verdict)
	require.True(t, j.Unpaired)
	require.Equal(t, []string{"1× (–)", "0.0 %"}, shown[1][2:4])
	for _, both := range [][2][]float64{{still, rough}, {rough, still}} {
		j, shown = look(both[0], both[1], Comparison{AtMost: 1.1})
		require.Equal(t, WithinNoise, j.Verdict, "the rougher of the two counts")
		require.Greater(t, j.Noise, 0.2)
		require.Less(t, j.Noise, 0.8)
		require.NotEqual(t, "–", shown[1][3])
		again, _ := look(both[0], both[1], Comparison{AtMost: 1.1})
		require.Equal(t, j, again)
	}
	j, _ = look(still, []float64{150, 150, 150, 150, 150, 150, 150}, Comparison{AtMost: 1.1})
	require.Equal(t, DoesNotHold, j.Verdict)
	require.Zero(t, j.Noise, "a true difference is no noise")
	j, _ = look(still, rough, Comparison{By: Difference, AtMost: 1})
	require.Equal(t, WithinNoise, j.Verdict)
	require.Greater(t, j.Noise, 20.0)
	require.LessOrEqual(t, j.Noise, 45.0)
	j, shown = look(still, rough, Comparison{})
	require.Zero(t, j.Noise)
	require.Equal(t, "–", shown[1][3], "where nothing has to hold there is none")
}

func TestAValueAloneIsJudgedInItsUnit(t *testing.T) {
	r := &Result{Rounds: 3, Quantities: []Quantity{{Name: "speed", Unit: "ms"}}, Ways: []*Measured{of("ours", 0, 200, 210, 250)}, Again: of("again", 0, 205, 215, 240)}
	require.NoError(t, r.judge([]Comparison{
		{Quantity: "speed", Of: "ours", By: Alone, AtMost: 300}, {Quantity: "speed", Of: "ours", By: Alone, AtMost: 100}, {Quantity: "speed", Of: "ours", By: Alone, AtMost: 211},
	}, nil))
	for i, verdict := range []Verdict{Holds, DoesNotHold, WithinNoise} {
		require.Equal(t, verdict, r.Judged[i].Verdict)
		require.InDelta(t, 210, r.Judged[i].Value, 1e-9)
		require.InDelta(t, 250, r.Judged[i].High, 1e-9)
	}
	require.Contains(t, r.judgements()[1][2], "210 ms")
}
