package replay

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/internal/replay/env"
)

func TestTheReplayPageHasTheSettingsAndExitCodes(t *testing.T) {
	text, err := os.ReadFile("../../docs/replay.md")
	require.NoError(t, err)
	page := strings.Join(strings.Fields(strings.ReplaceAll(string(text), "`", "")), " ")
	for _, key := range append([]string{"config"}, env.SettingKeys...) {
		require.Contains(t, page, "| --"+key+" | "+env.VariableName(env.ProgramName, key)+" |")
	}
	_, codes, found := strings.Cut(longHelp, "Exit codes:\n")
	require.True(t, found)
	for line := range strings.Lines(codes) {
		code, meaning, _ := strings.Cut(strings.TrimSpace(line), "   ")
		require.Contains(t, page, "| "+code+" | "+strings.TrimSpace(meaning)+" |")
	}
}
