package output

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestALongTextIsBrokenAtItsBlanksAndHangs(t *testing.T) {
	require.Equal(t, "one two\n    three\n    four", Wrap("one two three  four", 13, 2, 4))
	require.Equal(t, "äöü äöü\n äöü", Wrap("äöü äöü äöü", 7, 0, 1), "characters count, not bytes")
	require.Equal(t, "a\n a-word-that-is-too-long\n b", Wrap("a a-word-that-is-too-long b", 8, 0, 1))
	require.Equal(t, "a  b c", Wrap("a  b c", 80, 0, 4), "blanks stay")
	require.Equal(t, "any width at all", Wrap("any width at all", 0, 70, 4))
	require.Empty(t, Wrap("", 80, 0, 4))
}
