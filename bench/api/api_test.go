package api

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

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

func TestEverythingIsMeasuredOfBothServers(t *testing.T) {
	run := &measure.Run{Report: &measure.Report{Seed: 1}, Rounds: 1, Log: t.Output()}
	require.NoError(t, Measure(t.Context(), run, 60))
	require.NoError(t, run.Report.Table(t.Output()))
	measured := map[string]bool{}
	for _, result := range run.Report.Results {
		measured[result.Name] = true
		require.NotEmpty(t, result.Judged)
		require.Equal(t, kuberewind, result.Ways[0].Name)
		require.Equal(t, kubeAPIServer, result.Ways[len(result.Ways)-1].Name)
		for _, way := range result.Ways {
			for quantity, values := range way.Values {
				require.Len(t, values, 1)
				if quantity != serverCPU { // the kernel counts hundredths of a second
					require.Positive(t, values[0], "%s of %s, %s", quantity, way.Name, result.Name)
				}
			}
		}
	}
	for _, name := range []string{"api-heap", "api-list-http1", "api-list-http2", "api-namespace-http2", "api-watchlist-http2", "api-get-http2", "api-table-http2", "api-watch-http2"} {
		require.True(t, measured[name], name)
	}
}

func TestAnswersOfAnotherLengthEndTheRun(t *testing.T) {
	w := &world{run: &measure.Run{}, ours: map[string]*target{}, theirs: map[string]*target{}}
	w.ours[http1] = serving(t, "exactly a hundred bytes"+fmt.Sprintf("%77s", ""))
	w.theirs[http1] = serving(t, fmt.Sprintf("%106s", ""))
	run := &measure.Run{Report: &measure.Report{Seed: 1}, Rounds: 1, Log: t.Output()}
	err := run.Do(t.Context(), w.lists(http1))
	require.ErrorIs(t, err, errAnswer)
	require.ErrorContains(t, err, "the length is 106 of kube-apiserver, and was 100 of another")
}
