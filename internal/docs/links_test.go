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
	fence   = regexp.MustCompile("(?ms)^```.*?^```")
	code    = regexp.MustCompile("`[^`\n]*`")
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	dropped = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// anchor returns GitHub's name of a heading in a link.
func anchor(title string) string {
	return strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(title), ""), " ", "-")
}

func TestEveryLinkInTheDocsHasATarget(t *testing.T) {
	for _, pattern := range []string{"../../*.md", "../../docs/*.md", "../../bench/*.md", "../../bench/*/*.md"} {
		pages, err := filepath.Glob(pattern)
		require.NoError(t, err)
		require.NotEmpty(t, pages, pattern)
		for _, page := range pages {
			text, err := os.ReadFile(page)
			require.NoError(t, err)
			prose := code.ReplaceAllString(fence.ReplaceAllString(string(text), ""), "")
			for _, match := range link.FindAllStringSubmatch(prose, -1) {
				checkLink(t, page, match[1])
			}
		}
	}
}

func checkLink(t *testing.T, page, target string) {
	t.Helper()
	if strings.Contains(target, "://") {
		return
	}
	path, fragment, _ := strings.Cut(target, "#")
	if path = filepath.Join(filepath.Dir(page), path); strings.HasPrefix(target, "#") {
		path = page
	}
	text, err := os.ReadFile(path)
	if info, found := os.Stat(path); found == nil && info.IsDir() {
		return
	}
	require.NoError(t, err, "%s links to %s", page, target)
	if fragment == "" {
		return
	}
	for _, match := range heading.FindAllStringSubmatch(fence.ReplaceAllString(string(text), ""), -1) {
		if anchor(match[1]) == fragment {
			return
		}
	}
	t.Errorf("%s links to %s, which has no such heading", page, target)
}
