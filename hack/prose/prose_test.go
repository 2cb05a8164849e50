package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// counted returns the words of each sentence, in order.
func counted(t *testing.T, passages []passage) []int {
	t.Helper()
	var counts []int
	for _, s := range sentences(passages) {
		counts = append(counts, s.words)
	}
	return counts
}

func TestASentenceEndsAtItsMark(t *testing.T) {
	for text, want := range map[string][]string{
		"One. Two three! Four?":                 {"One.", "Two three!", "Four?"},
		"It stores 2.5 rows, e.g. one. No more": {"It stores 2.5 rows, e.g. one.", "No more"},
		"The recorder (a program.) ends. lower": {"The recorder (a program.)", "ends.", "lower"},
		"Open `a. b` now":                       {"Open `a.", "b` now"},
	} {
		require.Equal(t, want, split(text), text)
	}
}

func TestCodeIsOneWordAndAMarkIsNone(t *testing.T) {
	require.Equal(t, 4, words("run `make soak FOR=60m` — not now"))
}

func TestMarkdownCountsParagraphsAndItemsOnly(t *testing.T) {
	page := "# A heading of five words\n\nOne two `code span of words` [three four](x).\nFive.\n\n" +
		"| a | b |\n|---|---|\n| many words stand in here | b |\n\n```sh\nmake this now\n```\n\n" +
		"- An item.\n- `--flag` says what it does and more\n\n> Quoted text.\n\n<!-- a mark -->\n"
	require.Equal(t, []int{5, 1, 2, 2}, counted(t, markdown([]byte(page))))
	require.Equal(t, 3, markdown([]byte(page))[0].line)
}

func TestGoCountsCommentsHelpLogsAndErrors(t *testing.T) {
	const file = `// Package p has one sentence. And two.
//
//	code that is not counted
package p

//go:generate nothing at all

func f() {
	log.Info("three words here", "key", "a value that is long")
	log.WarnContext(ctx, "two words")
	_ = fmt.Errorf("open "+name+" of four: %w", err)
	flags.StringVar(&s, "name", "a default value of words", "help of four words")
	_ = cobra.Command{Use: "p does not count", Short: "Short one"}
	other("this is no message at all")
}
`
	passages, err := source("p.go", []byte(file))
	require.NoError(t, err)
	require.Equal(t, []int{5, 2, 3, 2, 5, 4, 2}, counted(t, passages))
	passages, err = source("p_test.go", []byte(file))
	require.NoError(t, err)
	require.Equal(t, []int{5, 2}, counted(t, passages))
}

func TestARefusedWordFailsTheCheck(t *testing.T) {
	for text, want := range map[string]string{
		"The recorder leaves the history.":    "leaves",
		"Nobody asks `somebody`.":             "Nobody",
		"What is newest was served.":          "What",
		"What is a gap?":                      "",
		"Of those, two are new.":              "Of those",
		"The recorder closes the connection.": "",
		"A test leaf is left over":            "",
		"The gap starts with `tell`.":         "",
	} {
		require.Equal(t, want, refusedIn(text), text)
	}
	const file = "package p\n\nfunc TestTheStreamIsToldOfARollback(t *testing.T) {}\n\nfunc (s suite) TestNobodyReads() {}\n"
	passages, err := source("p_test.go", []byte(file))
	require.NoError(t, err)
	require.Equal(t, []passage{{line: 3, text: "The Stream Is Told Of A Rollback"}}, passages)
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("p_test.go", []byte(file), 0o600))
	var out bytes.Buffer
	require.ErrorIs(t, check(&out, []string{"p_test.go"}), errLimits)
	require.Contains(t, out.String(), `line 3: "Told" is refused`)
	require.Contains(t, out.String(), "1 sentences with refused words")
}

func TestSQLCountsComments(t *testing.T) {
	require.Equal(t, []int{4, 2}, counted(t, sql("-- One row for\n-- each.\nSELECT 1; -- not this\n-- Two words\n")))
}

func TestAFileThatBreaksALimitFailsTheCheck(t *testing.T) {
	t.Chdir(t.TempDir())
	words := func(n int) string { return strings.TrimSpace(strings.Repeat("word ", n)) + ".\n\n" }
	for _, c := range []struct {
		name, page, says string
	}{
		{"short", words(12) + words(16), ""},
		{"empty", "# Only a heading\n", ""},
		{"long", strings.Repeat(words(5), 20) + words(31), "longest sentence 31, limit 30"},
		{"often-long", strings.Repeat(words(5), 8) + strings.Repeat(words(26), 2), "90th percentile 26, limit 25"},
		{"all-longish", strings.Repeat(words(17), 3), "median 17, limit 16"},
	} {
		file := c.name + ".md"
		require.NoError(t, os.WriteFile(file, []byte(c.page), 0o600))
		var out bytes.Buffer
		err := check(&out, []string{file})
		if c.says == "" {
			require.NoError(t, err, c.name)
			require.Empty(t, out.String(), c.name)
			continue
		}
		require.ErrorIs(t, err, errLimits, c.name)
		require.Contains(t, out.String(), c.says)
	}
}

func TestInputOfTestsIsExempt(t *testing.T) {
	for file, want := range map[string]bool{"a/testdata/b.go": true, "testdata/b/c.md": true, "testdata.md": false, "a/b.go": false} {
		require.Equal(t, want, exempt(file), file)
	}
}
