package answers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/bench/measure"
	"github.com/kuberewind/kuberewind/internal/pgtest"
	"github.com/kuberewind/kuberewind/internal/scenetest"
)

func TestMain(m *testing.M) {
	if err := Children().Run(context.Background()); !errors.Is(err, measure.ErrNotChild) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	pgtest.Main(m)
}

func TestEachQuestionIsAnsweredAndJudged(t *testing.T) {
	database := pgtest.New(t, scenetest.Record)
	run := &measure.Run{Report: &measure.Report{Seed: 1}, Rounds: 1, Log: t.Output()}
	require.NoError(t, Measure(t.Context(), run, database.URL(), "the scene"))
	require.NoError(t, run.Report.Table(t.Output()))
	result := run.Report.Results[0]
	require.Contains(t, result.Data, "the Deployment has")
	require.Len(t, result.Ways, 13)
	for _, way := range result.Ways {
		first, end := way.Values[firstLine][0], way.Values[wholeAnswer][0]
		require.Positive(t, first, way.Name)
		require.LessOrEqual(t, first, end, way.Name)
		require.Positive(t, way.Values[printed][0], way.Name)
	}
	require.Len(t, result.Judged, 13+6)
	for _, j := range result.Judged {
		require.Equal(t, "ms", j.Unit)
		require.Positive(t, j.AtMost)
	}
}

func TestAnAnswerThatFailsEndsTheRun(t *testing.T) {
	database := pgtest.New(t, scenetest.Record)
	_, err := ask(t.Context(), database.URL(), []string{"log", "deployments/no-such-one", "-n", "shop"})
	require.ErrorContains(t, err, "no-such-one")
	_, err = ask(t.Context(), database.URL(), completing("get", "pods", "-n", "shop", "no-such-one"))
	require.ErrorIs(t, err, errNoAnswer)
}
