package docs_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheConnectPageQuotesTheGoExamples(t *testing.T) {
	page, err := os.ReadFile("../../docs/connect.md")
	require.NoError(t, err)
	examples := ""
	for _, name := range []string{"open", "sql"} {
		text, err := os.ReadFile("../../history/" + name + "_example_test.go")
		require.NoError(t, err)
		examples += string(text)
	}
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	require.Len(t, blocks, 2)
	unindented := strings.ReplaceAll(examples, "\n\t", "\n")
	for _, block := range blocks {
		require.Contains(t, unindented, block[1])
	}
}
