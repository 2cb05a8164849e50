package kube

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/patch"
)

// membersOf makes an object with as many members.
func membersOf(n int, key, value string) string {
	members := make([]string, n)
	for i := range members {
		members[i] = fmt.Sprintf(key+":"+value, i)
	}
	return "{" + strings.Join(members, ",") + "}"
}

// Quadratic work on these would take longer than any test may.
func TestWhoWroteIsFoundInLinearTime(t *testing.T) {
	const keys = 300_000
	data, list := membersOf(keys, `"%06d"`, `1`), membersOf(keys, `"k:{\"name\":\"%06d\"}"`, `{"f:image":{}}`)
	owned := membersOf(keys, `"f:%06d"`, `{}`)
	var operations []string
	for i := range keys / 2 {
		operations = append(operations, fmt.Sprintf(`{"op":"replace","path":"/list/%d/name","value":1}`, i))
	}
	operations = append(operations, `{"old":`+data+`,"op":"replace","path":"/data","value":`+strings.ReplaceAll(data, `:1`, `:2`)+`}`)
	paths := changedPaths([]byte("[" + strings.Join(operations, ",") + "]"))
	require.Len(t, paths, keys+keys/2)

	one := &manager{fields: patch.Doc(`{"f:data":{"f:000001":{}}}`)}
	most := &manager{fields: patch.Doc(`{"f:data":` + owned + `,"f:list":` + list + `}`)}
	require.Same(t, most, mostConcerned([]*manager{one, most, one}, nil, paths))
}

func TestAPathIsOwnedByWhatHoldsItOrSomethingOfIt(t *testing.T) {
	set := (*fieldSet)(nil).with(patch.Doc(`{".":{},"f:a":{"f:b":{},"f:c":null},"f:l":{"k:{\"n\":1}":{".":{},"f:x":{}},"k:{\"n\":2}":{"f:y":{"f:z":{}}}},"f:s":{"v:\"one\"":{}}}`))
	for pointer, want := range map[string]bool{
		"": true, "/a": true, "/a/b": true, "/a/b/below": true, "/a/c": false, "/a/d": false, "/b": false,
		"/l/0": true, "/l/0/x": true, "/l/7/y": true, "/l/0/y/z": true, "/l/0/y/a": false, "/l/0/n": false, "/s/0": true,
	} {
		require.Equal(t, want, set.owns(splitPath([]byte(pointer))), pointer)
	}
	require.False(t, (*fieldSet)(nil).with(patch.Doc(`null`)).owns(nil))
}

func TestAnObjectThatIsReplacedWholeIsComparedFieldByField(t *testing.T) {
	var changed []string
	for _, path := range changedPaths([]byte(`[{"old":{"a":1,"b":{"c":1,"d":1},"e":1},"op":"replace","path":"/x~1y","value":{"a":1,"b":{"c":2,"d":1},"f":1}}]`)) {
		var keys []string
		for _, key := range path {
			keys = append(keys, string(key))
		}
		changed = append(changed, strings.Join(keys, " "))
	}
	require.ElementsMatch(t, []string{"x/y b c", "x/y e", "x/y f"}, changed)
}
