package patch_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/patch"
)

func TestTheOperationsOfAPatchAreReadInTheirOrder(t *testing.T) {
	text := `[{"op":"add","path":"/a~1b/c~0d","value":{"x":1}},{"from":"/l/3","op":"move","path":"/l/0"},{"old":1,"op":"replace","path":"","value":2},{"old":null,"op":"remove","path":"/\u00e9"}]`
	change, err := patch.Canonical([]byte(text))
	require.NoError(t, err)
	require.Equal(t, []patch.Operation{
		{Op: "add", Path: []string{"a/b", "c~d"}, Value: patch.Doc(`{"x":1}`)},
		{Op: "move", Path: []string{"l", "0"}, From: []string{"l", "3"}},
		{Op: "replace", Value: patch.Doc("2"), Old: patch.Doc("1")},
		{Op: "remove", Path: []string{"é"}, Old: patch.Doc("null")},
	}, slices.Collect(patch.Operations(change)))
}

func TestTextThatIsNoPatchHasNoOperations(t *testing.T) {
	for _, text := range []string{``, `null`, `{}`, `[]`, `[1]`, `[{"path":"/a"}]`, `[{"op":"add","path":"a","value":1}]`} {
		require.Empty(t, slices.Collect(patch.Operations([]byte(text))), text)
	}
}
