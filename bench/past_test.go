package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/bench/measure"
)

func TestTheFirstListIsMeasuredOutOfAShortAndALongRecord(t *testing.T) {
	t.Parallel()
	run := &measure.Run{Report: &measure.Report{Seed: 1}, Rounds: 1, Log: t.Output()}
	thousand := func(int64) int64 { return 1000 } // a recorder takes 20,000 at least
	require.NoError(t, pastGrowth(t.Context(), run, 2500, 3000, 500, thousand))
	result := run.Report.Results[0]
	require.Equal(t, "2,500 deltas", result.Ways[0].Name)
	require.Equal(t, "3,000 deltas", result.Ways[1].Name)
	require.Positive(t, result.Judged[0].Value)
}
