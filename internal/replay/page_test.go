package replay

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestThePageHasTheSettingsAndExitCodes(t *testing.T) {
	text, err := os.ReadFile("../../docs/replay.md")
	require.NoError(t, err)
	page := strings.Join(strings.Fields(strings.ReplaceAll(string(text), "`", "")), " ")
	for _, key := range append([]string{"config"}, settingKeys...) {
		require.Contains(t, page, "| --"+key+" | "+variableName(programName, key)+" |")
	}
	_, codes, found := strings.Cut(longHelp, "Exit codes: ")
	require.True(t, found)
	require.Contains(t, page, strings.Join(strings.Fields(strings.ReplaceAll(codes, `"`, "")), " "))
}
