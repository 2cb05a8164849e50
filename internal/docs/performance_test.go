package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	resultRow = regexp.MustCompile(`(?m)^\| (.*) \| \[\w+\]\((\.\./bench/results/[a-z]+\.md)\) \|$`)
	figure    = regexp.MustCompile(`(?:^|[ (>])(\d[\d,.]*×?)`)
	command   = regexp.MustCompile("`[^`]*`")
)

// figures returns the numbers of a text, except numbers in commands, which are not measurements.
func figures(text string) map[string]bool {
	found := map[string]bool{}
	for _, match := range figure.FindAllStringSubmatch(command.ReplaceAllString(text, ""), -1) {
		found[strings.TrimRight(match[1], ",.")] = true
	}
	return found
}

func TestTheFiguresOfThePerformancePageMatchTheResults(t *testing.T) {
	const dir = "../../docs"
	page, err := os.ReadFile(filepath.Join(dir, "performance.md"))
	require.NoError(t, err)
	rows := resultRow.FindAllStringSubmatch(string(page), -1)
	require.Greater(t, len(rows), 30)
	for _, row := range rows {
		_, cells, _ := strings.Cut(row[1], " | ") // the first cell is the name of the row
		results, err := os.ReadFile(filepath.Join(dir, row[2]))
		require.NoError(t, err)
		measured := figures(string(results))
		for value := range figures(cells) {
			require.True(t, measured[value], "%s has no %s, of the row %s", row[2], value, row[0])
		}
	}
}
