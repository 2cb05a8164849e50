package terminal_test

import (
	"bytes"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kuberewind/kuberewind/internal/replay"
)

func TestColoursFollowTheSettings(t *testing.T) {
	scene(t)
	t.Setenv("NO_COLOR", "")
	t.Setenv("TERM", "xterm")
	difference := []string{"diff", "deployments", "-A", "--from", "seq:300", "--no-pager", "-q"}
	_, seen := atTerminal(t, difference...)
	require.Contains(t, seen, "\x1b[33m~ Deployment shop/web\x1b[0m\n")
	_, seen = atTerminal(t, append(difference, "-u")...)
	require.Contains(t, seen, "\x1b[1m--- a/deployments.apps/shop/web")
	require.Contains(t, seen, "\x1b[32m+")
	_, seen = atTerminal(t, "story", "deployment/web", "-n", "shop", "--no-pager", "-q", "--utc")
	for _, coloured := range []string{
		" 13:17:57.380      Pod web-5798c68678-dxd68  \x1b[32mcreated", "  \x1b[31mdeleted\x1b[0m\n", "  \x1b[33mWarning Failed: ",
		"\x1b[1mRollouts of Deployment shop/web:\x1b[0m\n", "               \x1b[31mstuck from 13:17:57.424: ",
	} {
		require.Contains(t, seen, coloured)
	}
	_, seen = atTerminal(t, "get", "podz")
	require.Contains(t, seen, "\x1b[1;31merror:\x1b[0m the server doesn't have a resource type")
	_, seen = atTerminal(t, "get", "nodes")
	require.Contains(t, seen, "\x1b[36mNote:\x1b[0m the record ends at")

	for _, never := range []struct {
		variable, value string
		flags           []string
	}{
		{"NO_COLOR", "1", nil},
		{"TERM", "dumb", nil},
		{"REPLAY_COLOR", "never", nil},
		{"REPLAY_COLOR", "always", []string{"--color", "never"}},
	} {
		t.Run(never.variable+never.value, func(t *testing.T) {
			t.Setenv(never.variable, never.value)
			_, seen := atTerminal(t, append(difference, never.flags...)...)
			require.Contains(t, seen, "~ Deployment shop/web\n")
			require.NotContains(t, seen, "\x1b")
		})
	}

	piped := func(flags ...string) string {
		var out bytes.Buffer
		replay.Execute(t.Context(), "replay", append(difference, flags...), genericiooptions.IOStreams{Out: &out, ErrOut: io.Discard})
		return out.String()
	}
	require.NotContains(t, piped(), "\x1b")
	require.NotContains(t, piped("--color", "always", "-o", "json"), "\x1b")
	t.Setenv("NO_COLOR", "1")
	require.Contains(t, piped("--color", "always"), "\x1b[33m~ Deployment shop/web\x1b[0m\n", "the program's own setting overrides NO_COLOR")
}
