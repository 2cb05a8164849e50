package measure

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// killed is a run that ends with no time to say so: of it only the file is left.
func killed(t *testing.T, path string, do func(*Run) error) {
	t.Helper()
	report, err := new(Report).Continue(path)
	require.NoError(t, err)
	run := &Run{Report: report, Rounds: 3, Log: t.Output(), Keep: func() error { return report.Keep(path) }}
	run.Begin(Origin{Measures: []string{"1"}, Version: "v1"})
	require.ErrorIs(t, do(run), errKilled)
}

var errKilled = errors.New("killed")

func TestAKillLosesTheRoundThatItIsAt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report.json")
	var order []string
	// measure runs two experiments, and is killed after so many runs.
	measure := func(r *Run, after int) error {
		for _, name := range []string{"x", "y"} {
			way := fixed(&order, name, 0, 1)
			lives := way.Run
			way.Run = func(ctx context.Context, round int) (Values, error) {
				if len(order) == after {
					return nil, errKilled
				}
				return lives(ctx, round)
			}
			if err := r.Do(t.Context(), Experiment{Name: name, Quantities: []Quantity{{Name: "speed"}}, Ways: []Way{way}}); err != nil {
				return err
			}
		}
		r.End()
		return errors.Join(r.Keep(), errKilled)
	}
	kill := func(after int) (ran string, left *Report) {
		order = nil
		killed(t, path, func(r *Run) error { return measure(r, after) })
		left, err := Read(path)
		require.NoError(t, err)
		return strings.Join(order, ""), left
	}
	_, left := kill(2)
	require.Equal(t, 2, left.Begun.whole())
	require.Equal(t, []string{"1"}, left.Missing([]string{"1"}))
	ran, left := kill(3)
	require.Equal(t, "xyy", ran)
	require.Len(t, left.Results, 1)
	require.Equal(t, 2, left.Begun.whole())
	ran, left = kill(10)
	require.Equal(t, "y", ran)
	require.Empty(t, left.Missing([]string{"1"}))

	// Complete results stay until an experiment of the new run is complete.
	whole := left
	ran, left = kill(2)
	require.Equal(t, "xx", ran)
	require.Equal(t, whole, left)
	ran, left = kill(3)
	require.Equal(t, "xxx", ran)
	require.Equal(t, []string{"1"}, left.Missing([]string{"1"}))
	require.Len(t, left.Results, 1, "the other is of another time")
	ran, left = kill(10)
	require.Equal(t, "yyy", ran)
	require.Empty(t, left.Missing([]string{"1"}))
	require.Len(t, left.Results, 2)
}

func TestAResultThatCannotBeKeptEndsARun(t *testing.T) {
	failure := errors.New("no space left")
	var order []string
	run := &Run{Report: new(Report), Rounds: 3, Log: t.Output(), Keep: func() error { return failure }}
	require.ErrorIs(t, run.Do(t.Context(), Experiment{Name: "x", Quantities: []Quantity{{Name: "speed"}}, Ways: []Way{fixed(&order, "a", 0, 1)}}), failure)
	require.Len(t, order, 1)
}
