package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/bench/answers"
	"github.com/kuberewind/kuberewind/bench/measure"
)

func TestAGeneratedRecordAnswersEachQuestion(t *testing.T) {
	require.NoError(t, measure.OnServer(t.Context(), measure.ServerOptions{}, func(server *measure.Server) error {
		run := &measure.Run{Report: &measure.Report{Seed: 1}, Rounds: 1, Log: t.Output()}
		url, err := server.NewDatabase(t.Context())
		require.NoError(t, err)
		args := []string{"record", "-database", url, "-deltas", "3000", "-live", "400"}
		require.NoError(t, command(t.Context(), args, t.Output(), t.Output()))
		require.ErrorContains(t, command(t.Context(), args, t.Output(), t.Output()), "has a record already")
		require.NoError(t, answers.Measure(t.Context(), run, url, "generated"))
		require.Contains(t, run.Report.Results[0].Data, "generated: 3,0")
		return nil
	}))
}
