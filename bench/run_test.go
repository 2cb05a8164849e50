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

func TestARunIsKeptShownAndChecked(t *testing.T) {
	was := suite
	t.Cleanup(func() { suite = was })
	slow := func(context.Context, int) (measure.Values, error) { return measure.Values{"speed": 1}, nil }
	broken := errors.New("the disk is full")
	suite = []part{{[]string{"1"}, func(context.Context, *measure.Run) error { return broken }}, {[]string{"2", "3"}, func(ctx context.Context, run *measure.Run) error {
		return run.Do(ctx, measure.Experiment{
			Name: "sloth", Title: "Slowness", Quantities: []measure.Quantity{{Name: "speed", Unit: "m/s"}},
			Ways:    []measure.Way{{Name: "ours", Run: slow}, {Name: "theirs", Run: slow}},
			Compare: []measure.Comparison{{Number: "3", What: "speed", Quantity: "speed", Of: "ours", To: "theirs", AtLeast: 3}},
		})
	}}, {[]string{"4"}, nil}}
	dir := t.TempDir()
	var out bytes.Buffer
	err := command(t.Context(), []string{"run", "-only", "1,3", "-rounds", "1", "-size", "quick", "-keep", dir, "-check"}, &out, t.Output())
	require.ErrorIs(t, err, errBroken)
	require.ErrorIs(t, err, broken, "and the next part is measured all the same")
	require.Contains(t, out.String(), "does not hold")
	kept, err := filepath.Glob(filepath.Join(dir, "*.json"))
	require.NoError(t, err)
	require.Len(t, kept, 1)

	out.Reset()
	charts := filepath.Join(dir, "charts")
	require.NoError(t, command(t.Context(), []string{"report", "-o", "markdown", "-charts", charts, "-link", "pictures", kept[0]}, &out, t.Output()))
	require.Contains(t, out.String(), "(pictures/sloth-speed.svg)")
	require.FileExists(t, filepath.Join(charts, "sloth-speed.svg"))
}

func TestCommandsThatMakeNoSenseAreRefused(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty")
	require.NoError(t, os.WriteFile(empty, nil, 0o600))
	for _, args := range [][]string{
		{}, {"walk"}, {"run", "-size", "huge"}, {"run", "-rounds", "0"}, {"run", "-only", "12"}, {"run", "-o", "xml"}, {"run", "2"},
		{"report"}, {"report", "-o", "xml", empty}, {"report", empty}, {"report", "no-such-file"}, {"compare"}, {"compare", "-old", "HEAD", "-count", "0"},
		{"sizing", "-nodes", "-1"}, {"data", "more"}, {"data", "-live", "1"}, {"data", "-recording", "no-such-file"},
	} {
		require.Error(t, command(t.Context(), args, t.Output(), t.Output()), args)
	}
}

func TestTheDataIsDescribed(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, command(t.Context(), []string{"data", "-live", "200", "-events", "1000"}, &out, t.Output()))
	require.Contains(t, out.String(), "leases")
	require.Contains(t, out.String(), "1000   100.0 %")
}
