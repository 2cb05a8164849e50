package patch_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kuberewind/kuberewind/patch"
)

func TestQuoteIsCanonicalAndUnquoteReversesIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		quoted := patch.Quote([]byte(text))
		canonical, err := patch.Canonical(quoted)
		require.NoError(t, err)
		require.Equal(t, string(canonical), string(quoted))
		var decoded string
		require.NoError(t, json.Unmarshal(quoted, &decoded))
		require.Equal(t, text, decoded)
		back, ok := patch.Unquote(quoted)
		require.True(t, ok)
		require.Equal(t, text, string(back))
	})
}

func TestUnquoteRejectsTextThatIsNoString(t *testing.T) {
	for _, doc := range []string{"1", "null", "{}", "[]", ""} {
		_, ok := patch.Unquote(patch.Doc(doc))
		require.False(t, ok, doc)
	}
}
