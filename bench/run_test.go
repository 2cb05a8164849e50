package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/bench/measure"
)

func TestARunIsKeptShownCheckedAndGoneOnWith(t *testing.T) {
	was := suite
	t.Cleanup(func() { suite = was })
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
	require.Contains(t, string(text), "`go run ./bench run -only 2, 3 -rounds 1 -size quick`")
	require.FileExists(t, filepath.Join(dir, "performance", "sloth.svg"))
	require.NoFileExists(t, stale)
}

// slow is a way that always takes as long.
func slow(context.Context, int) (measure.Values, error) { return measure.Values{"speed": 1}, nil }

// withSuite has the command run other parts, and gives that command: its results are in a file.
func withSuite(t *testing.T, parts ...part) (results string, bench func(args ...string) error) {
	t.Helper()
	was := suite
	t.Cleanup(func() { suite = was })
	suite = parts
	results = filepath.Join(t.TempDir(), "results.json")
	return results, func(args ...string) error {
		return command(t.Context(), append([]string{"run", "-size", "quick", "-results", results}, args...), t.Output(), t.Output())
	}
}

func TestACheckFailsOnlyForTheMeasuresOfItsRun(t *testing.T) {
	sloth := part{numbers: []string{"2", "3"}, run: func(ctx context.Context, run *measure.Run) error {
		return run.Do(ctx, measure.Experiment{
			Name: "sloth", Quantities: []measure.Quantity{{Name: "speed", Unit: "m/s"}}, Ways: []measure.Way{{Name: "ours", Run: slow}, {Name: "theirs", Run: slow}},
			Compare: []measure.Comparison{{Number: "3", What: "speed", Quantity: "speed", Of: "ours", To: "theirs", AtLeast: 3}},
		})
	}}
	_, bench := withSuite(t, sloth, part{numbers: []string{"4"}, run: func(context.Context, *measure.Run) error { return nil }})
	require.NoError(t, bench("-only", "3"))
	require.NoError(t, bench("-only", "4", "-check"), "what does not hold is of another measure")
	require.ErrorIs(t, bench("-only", "2", "-check"), errBroken, "of the same part")
	require.ErrorIs(t, bench("-check"), errBroken, "none is named")
}

func TestEachRoundIsKept(t *testing.T) {
	var results string
	watched := measure.Way{Name: "ours", Run: func(ctx context.Context, round int) (measure.Values, error) {
		if round > 0 {
			left, err := measure.Read(results)
			require.NoError(t, err)
			require.Len(t, left.Begun.Ways[0].Values["speed"], round)
			require.Equal(t, []string{"2"}, left.Missing([]string{"2"}))
		}
		return slow(ctx, round)
	}}
	results, bench := withSuite(t, part{numbers: []string{"2"}, run: func(ctx context.Context, run *measure.Run) error {
		return run.Do(ctx, measure.Experiment{Name: "watched", Quantities: []measure.Quantity{{Name: "speed"}}, Ways: []measure.Way{watched}})
	}})
	require.NoError(t, bench("-rounds", "3"))
	left, err := measure.Read(results)
	require.NoError(t, err)
	require.Nil(t, left.Begun)
	require.Empty(t, left.Missing([]string{"2"}))
}

func TestATargetOfOneMeasureIsMakeBenchOfIt(t *testing.T) {
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip("this system has no make")
	}
	for want, args := range map[string][]string{
		" -size full -rounds 5 -only 7 -check -results bench-results/full.json":                               {"bench-replay"},
		" -size full -rounds 9 -only 7 -check -results elsewhere.json -dir \"/big\"":                          {"bench-replay", "RUNS=9", "RESULTS=elsewhere.json", "DIR=/big"},
		" -size middle -rounds 15 -only 14 -check -o table -results bench-results/middle.json":                {"bench-api"},
		" -size middle -rounds 5 -only 15 -check -o table -recording \"\" -results bench-results/middle.json": {"bench-timeline", "RECORDING="},
		" -size full -rounds 5 -only 15 -check -o table -recording \"r.zst\" -record \"postgres://there/is\" -results bench-results/full.json": {
			"bench-timeline", "SIZE=full", "RECORDING=r.zst", "RECORD=postgres://there/is",
		},
		" -size quick -rounds 3 -only 14 -check -o json -results bench-results/quick.json -dir \"/big\"": {"bench-api", "SIZE=quick", "RUNS=3", "OUTPUT=json", "DIR=/big"},
	} {
		cmd := exec.CommandContext(t.Context(), "make", append([]string{"--no-print-directory", "-n", "-C", ".."}, args...)...)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")} // without the variables of a make that runs this
		said, err := cmd.CombinedOutput()
		require.NoError(t, err, string(said))
		require.Contains(t, string(said), want)
	}
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
