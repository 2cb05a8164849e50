package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/bench/measure"
)

func TestARunIsKeptShownCheckedAndGoneOnWith(t *testing.T) {
	was := suite
	t.Cleanup(func() { suite = was })
	slow := func(context.Context, int) (measure.Values, error) { return measure.Values{"speed": 1}, nil }
	broken, ran := errors.New("the disk is full"), 0
	fails := func(context.Context, *measure.Run) error { ran++; return broken }
	suite = []part{{numbers: []string{"1"}, run: fails}, {numbers: []string{"2", "3"}, run: func(ctx context.Context, run *measure.Run) error {
		ran++
		return run.Do(ctx, measure.Experiment{
			Name: "sloth", Title: "Slowness", Quantities: []measure.Quantity{{Name: "speed", Unit: "m/s"}},
			Ways:    []measure.Way{{Name: "ours", Run: slow}, {Name: "theirs", Run: slow}},
			Compare: []measure.Comparison{{Number: "3", What: "speed", Quantity: "speed", Of: "ours", To: "theirs", AtLeast: 3}},
		})
	}}, {numbers: []string{"4"}, run: func(context.Context, *measure.Run) error { ran++; return nil }}, {numbers: []string{"12"}, run: fails, named: true}}
	dir := t.TempDir()
	results := filepath.Join(dir, "results.json")
	bench := func(args ...string) (string, error) {
		var out bytes.Buffer
		err := command(t.Context(), append([]string{"run", "-rounds", "1", "-size", "quick", "-results", results}, args...), &out, t.Output())
		return out.String(), err
	}
	out, err := bench("-only", "1,3", "-check")
	require.ErrorIs(t, err, errBroken)
	require.ErrorIs(t, err, broken, "and the next part is measured all the same")
	require.Contains(t, out, "does not hold")
	require.Equal(t, 2, ran)

	broken = nil
	_, err = bench()
	require.NoError(t, err)
	require.Equal(t, 4, ran, "what is complete is not measured again")
	_, err = bench("-only", "2, 3")
	require.NoError(t, err)
	require.Equal(t, 5, ran, "unless it is named")
	report, err := measure.Read(results)
	require.NoError(t, err)
	require.Empty(t, report.Missing(measures()))
	require.Len(t, report.Results, 1)

	page := filepath.Join(dir, "performance.md")
	stale := filepath.Join(dir, "performance", "stale.svg")
	require.NoError(t, os.Mkdir(filepath.Dir(stale), 0o700))
	require.NoError(t, os.WriteFile(stale, nil, 0o600))
	require.NoError(t, command(t.Context(), []string{"report", "-page", page, results}, t.Output(), t.Output()))
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Contains(t, string(text), "(performance/sloth.svg)")
	require.Contains(t, string(text), "`bench run -only 2, 3 -rounds 1 -size quick`")
	require.FileExists(t, filepath.Join(dir, "performance", "sloth.svg"))
	require.NoFileExists(t, stale)
}

func TestCommandsThatMakeNoSenseAreRefused(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty")
	require.NoError(t, os.WriteFile(empty, nil, 0o600))
	for _, args := range [][]string{
		{}, {"walk"}, {"run", "-size", "huge"}, {"run", "-rounds", "0"}, {"run", "-load-for", "0s"}, {"run", "-only", "none"}, {"run", "-recording", "no-such-file"}, {"run", "-o", "xml"}, {"run", "2"},
		{"report"}, {"report", "-o", "xml", empty}, {"report", empty}, {"report", "-page", "docs", empty}, {"report", "no-such-file"}, {"compare"}, {"compare", "-old", "HEAD", "-count", "0"},
		{"sizing", "-nodes", "-1"}, {"data", "more"}, {"data", "-live", "1"}, {"data", "-recording", "no-such-file"},
	} {
		require.Error(t, command(t.Context(), args, t.Output(), t.Output()), args)
	}
}

func TestHelpSaysWhatThereIs(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, command(t.Context(), []string{"--help"}, &out, t.Output()))
	for name := range commands {
		require.Contains(t, out.String(), name+" (")
	}
}

func TestTheDataIsDescribed(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, command(t.Context(), []string{"data", "-live", "200", "-events", "1000"}, &out, t.Output()))
	require.Contains(t, out.String(), "leases")
	require.Contains(t, out.String(), "1000   100.0 %")
}
