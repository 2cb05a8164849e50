package replay

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kuberewind/kuberewind/internal/replay/env"
	"github.com/kuberewind/kuberewind/internal/terminal"
)

func TestTheHelpOfEachCommandFitsOn80Columns(t *testing.T) {
	var visit func(cmd *cobra.Command, path []string)
	visit = func(cmd *cobra.Command, path []string) {
		var out bytes.Buffer
		require.Zero(t, Execute(t.Context(), "replay", append(path, "--help"), genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &out}))
		require.Contains(t, out.String(), "Usage:\n  replay "+strings.Join(path, " "))
		for line := range strings.Lines(out.String()) {
			require.LessOrEqual(t, terminal.Columns(strings.TrimSuffix(line, "\n")), 80, "%v: %s", path, line)
		}
		for _, sub := range cmd.Commands() {
			visit(sub, append(path[:len(path):len(path)], sub.Name()))
		}
	}
	visit(newRootCommand("replay", env.New(genericiooptions.IOStreams{}, nil)), nil)
}
