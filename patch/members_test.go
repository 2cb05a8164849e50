package patch_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/patch"
)

func TestMembersYieldsTheMembersOfTheText(t *testing.T) {
	read := func(text string) (keys, values []string) {
		for key, value := range patch.Members(canonical(t, text)) {
			if key != nil {
				keys = append(keys, string(key))
			}
			values = append(values, string(value))
		}
		return keys, values
	}
	keys, values := read(`{"b":[1,{"x":"]}"}],"a":{"c":{}},"\"":"\\","":null}`)
	require.Equal(t, []string{"", `\"`, "a", "b"}, keys)
	require.Equal(t, []string{"null", `"\\"`, `{"c":{}}`, `[1,{"x":"]}"}]`}, values)

	keys, values = read(`[1,"a",[],{"a":1}]`)
	require.Empty(t, keys)
	require.Equal(t, []string{"1", `"a"`, "[]", `{"a":1}`}, values)

	for _, text := range []string{"{}", "[]", "null", "1", `"{}"`} {
		_, values := read(text)
		require.Empty(t, values, text)
	}
	for range patch.Members(patch.Doc(`[1,2]`)) {
		break // the loop reads no further
	}
}
