package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/bench/answers"
	"github.com/kuberewind/kuberewind/bench/measure"
	"github.com/kuberewind/kuberewind/history"
)

func TestAGeneratedRecordAnswersEachQuestion(t *testing.T) {
	t.Parallel()
	require.NoError(t, measure.OnServer(t.Context(), measure.ServerOptions{}, func(server *measure.Server) error {
		run := &measure.Run{Report: &measure.Report{Seed: 1}, Rounds: 1, Log: t.Output()}
		url, err := generatedRecord(t.Context(), run, server, 3000, 400, history.CheckpointInterval)
		require.NoError(t, err)
		require.NoError(t, answers.Measure(t.Context(), run, url, "generated"))
		require.Contains(t, run.Report.Results[0].Data, "generated: 3,0")
		return nil
	}))
}
