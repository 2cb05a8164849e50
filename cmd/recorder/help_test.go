package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/internal/terminal"
)

func TestTheHelpOfEachCommandFitsOn80Columns(t *testing.T) {
	var visit func(cmd *cobra.Command, path []string)
	visit = func(cmd *cobra.Command, path []string) {
		var out bytes.Buffer
		require.Zero(t, run(t.Context(), append(path, "--help"), streams{in: strings.NewReader(""), out: &out, err: &out}))
		require.Contains(t, out.String(), "Usage:\n  recorder "+strings.Join(path, " "))
		for line := range strings.Lines(out.String()) {
			require.LessOrEqual(t, terminal.Columns(strings.TrimSuffix(line, "\n")), 80, "%v: %s", path, line)
		}
		for _, sub := range cmd.Commands() {
			visit(sub, append(path[:len(path):len(path)], sub.Name()))
		}
	}
	visit((&program{}).command(), nil)
}
