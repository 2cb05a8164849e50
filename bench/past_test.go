package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/bench/measure"
)

func TestTheFirstListIsMeasuredOutOfAShortAndALongRecord(t *testing.T) {
	t.Parallel()
	run := &measure.Run{Report: &measure.Report{Seed: 1}, Rounds: 1, Log: t.Output()}
	require.NoError(t, pastGrowth(t.Context(), run, 21_000, 21_500, 500))
	result := run.Report.Results[0]
	require.Equal(t, "21,000 deltas", result.Ways[0].Name)
	require.Equal(t, "21,500 deltas", result.Ways[1].Name)
	require.Positive(t, result.Judged[0].Value)
}
