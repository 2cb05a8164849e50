package terminal_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kuberewind/kuberewind/internal/terminal"
)

func TestLinesBreakAtSpacesAndIndent(t *testing.T) {
	for _, c := range []struct {
		text           string
		width, hanging int
		want           string
	}{
		{"one two three four", 9, 2, "one two\n  three\n  four"},
		{"short", 9, 2, "short"},
		{"one two three", 0, 2, "one two three"},
		{"    spec.replicas 3 → 5 and more", 20, 8, "    spec.replicas 3\n        → 5 and more"},
		{"a  b  c", 4, 0, "a  b\nc"},
		{"abcdefghij", 4, 1, "abcd\n efg\n hij"},
		{"x abcdefghij", 5, 0, "x abc\ndefgh\nij"},
		{"one two\nthree four five", 8, 1, "one two\nthree\n four\n five"},
		{"日本語 日本語", 8, 2, "日本語\n  日本語"},
		{"日本語日本語", 5, 0, "日本\n語日\n本語"},
		{"ééé ééé", 4, 0, "ééé\nééé"},
		{"👩‍👩‍👧‍👦👩‍👩‍👧‍👦👩‍👩‍👧‍👦", 4, 0, "👩‍👩‍👧‍👦👩‍👩‍👧‍👦\n👩‍👩‍👧‍👦"},
		{"\x1b[31mred words go on\x1b[0m plain", 9, 2, "\x1b[31mred words\x1b[0m\n  \x1b[31mgo on\x1b[0m\n  plain"},
		{"\x1b[31mredredred\x1b[0m", 4, 0, "\x1b[31mredr\x1b[0m\n\x1b[31medre\x1b[0m\n\x1b[31md\x1b[0m"},
		{"one two", 4, 40, "one\n  tw\n  o"},
	} {
		require.Equal(t, c.want, terminal.Wrap(c.text, c.width, c.hanging), "%q", c.text)
	}
}

func TestNoLineIsWiderThanTheTerminalAndNothingIsLost(t *testing.T) {
	words := rapid.SliceOfN(rapid.StringMatching(`[a-z日本é=→\[\]]{1,30}`), 1, 20)
	rapid.Check(t, func(t *rapid.T) {
		width, hanging := rapid.IntRange(8, 90).Draw(t, "width"), rapid.IntRange(0, 12).Draw(t, "hanging")
		text := strings.Join(words.Draw(t, "words"), " ")
		wrapped := terminal.Wrap(text, width, hanging)
		for line := range strings.SplitSeq(wrapped, "\n") {
			require.LessOrEqual(t, terminal.Columns(line), width, "%q", wrapped)
		}
		bare := strings.NewReplacer(" ", "", "\n", "")
		require.Equal(t, bare.Replace(text), bare.Replace(wrapped))
	})
}

func TestAStyleColoursEachLineSeparately(t *testing.T) {
	on, off := terminal.NewStyle(true), terminal.NewStyle(false)
	require.Equal(t, "\x1b[32m+ a\x1b[0m\n\x1b[32mb\x1b[0m\n", on.Added("+ a\nb\n"))
	require.Empty(t, on.Removed(""))
	require.Equal(t, "+ a\nb\n", off.Added("+ a\nb\n"))
	const unified = "--- a/x\trv 1\n+++ b/x\trv 2\n@@ -1 +1 @@\n-a\n+b\n c\n"
	require.Equal(t, unified, off.Unified(unified))
	require.Equal(t, "\x1b[1m--- a/x\trv 1\x1b[0m\n\x1b[1m+++ b/x\trv 2\x1b[0m\n\x1b[36m@@ -1 +1 @@\x1b[0m\n\x1b[31m-a\x1b[0m\n\x1b[32m+b\x1b[0m\n c\n", on.Unified(unified))
}
