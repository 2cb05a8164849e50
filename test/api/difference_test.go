package api_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A difference is a place at which two JSON values are not equal.
type difference struct {
	path         string
	theirs, ours any // absent if there is none
}

// absent is no JSON value.
type absent struct{}

// differences finds where the values differ.
func differences(path string, theirs, ours any) []difference {
	switch theirs := theirs.(type) {
	case map[string]any:
		if ours, ok := ours.(map[string]any); ok {
			return memberDifferences(path, theirs, ours)
		}
	case []any:
		if ours, ok := ours.([]any); ok {
			return itemDifferences(path, theirs, ours)
		}
	case absent:
	default:
		if theirs == ours { // A string, a number, true, false or null: they can be compared.
			return nil
		}
	}
	return []difference{{path, theirs, ours}}
}

func memberDifferences(path string, theirs, ours map[string]any) (found []difference) {
	names := maps.Clone(theirs)
	maps.Copy(names, ours)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		found = append(found, differences(path+"/"+name, member(theirs, name), member(ours, name))...)
	}
	return found
}

func member(of map[string]any, name string) any {
	if value, ok := of[name]; ok {
		return value
	}
	return absent{}
}

func itemDifferences(path string, theirs, ours []any) (found []difference) {
	for i := range max(len(theirs), len(ours)) {
		their, our := any(absent{}), any(absent{})
		if i < len(theirs) {
			their = theirs[i]
		}
		if i < len(ours) {
			our = ours[i]
		}
		found = append(found, differences(path+"/"+strconv.Itoa(i), their, our)...)
	}
	return found
}

// report shows the first differences.
func report(found []difference) string {
	var text strings.Builder
	for _, d := range found[:min(5, len(found))] {
		fmt.Fprintf(&text, "  %s\n    real server: %.600s\n    ours:        %.600s\n", d.path, compact(d.theirs), compact(d.ours))
	}
	if more := len(found) - 5; more > 0 {
		fmt.Fprintf(&text, "  and %d more\n", more)
	}
	return text.String()
}

func compact(value any) string {
	if value == (absent{}) {
		return "(nothing)"
	}
	text, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func jsonNumber(n int) json.Number { return json.Number(strconv.Itoa(n)) }

func TestEachDifferenceOfTwoJSONValuesIsFound(t *testing.T) {
	theirs := map[string]any{"a": "x", "b": []any{jsonNumber(1), jsonNumber(2)}, "c": nil, "d": map[string]any{"e": true}, "f": []any{}}
	ours := map[string]any{"a": "y", "b": []any{jsonNumber(1)}, "d": map[string]any{"e": "true"}, "f": map[string]any{}, "g": nil}
	var paths []string
	for _, d := range differences("", theirs, ours) {
		paths = append(paths, d.path)
	}
	require.Equal(t, []string{"/a", "/b/1", "/c", "/d/e", "/f", "/g"}, paths)
	require.Empty(t, differences("", theirs, theirs))
}
