package jsonlines_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/internal/serve/jsonlines"
)

func TestLinesOfConcurrentWritersAreWhole(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lines")
	require.NoError(t, os.WriteFile(name, []byte("\"before\"\n"), 0o600))
	const writers, lines = 8, 200
	var all sync.WaitGroup
	for range 2 { // as two servers with the same file
		file, err := jsonlines.Open("file", name)
		require.NoError(t, err)
		defer func() { require.NoError(t, file.Close()) }()
		for writer := range writers {
			all.Go(func() {
				for range lines {
					if err := file.Append(strings.Repeat(string(rune('a'+writer)), 5000)); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	all.Wait()
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	count := map[string]int{}
	for line := range strings.Lines(string(text)) {
		var value string
		require.NoError(t, json.Unmarshal([]byte(line), &value))
		count[value]++
	}
	want := map[string]int{"before": 1}
	for writer := range writers {
		want[strings.Repeat(string(rune('a'+writer)), 5000)] = 2 * lines
	}
	require.Equal(t, want, count)
}

func TestAFileThatCannotBeOpenedIsNamed(t *testing.T) {
	_, err := jsonlines.Open("intentions", filepath.Join(t.TempDir(), "none", "file"))
	require.ErrorContains(t, err, "open the intentions")
}
