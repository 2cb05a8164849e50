package get

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kuberewind/kuberewind/indexer"
)

// An indexValue is what --index asks for.
type indexValue struct{ name, value string }

// parseIndex reads name=value, of an index that there is.
func parseIndex(texts []string) ([]indexValue, error) {
	names := slices.Sorted(maps.Keys(indexer.BuiltIn()))
	var all []indexValue
	for _, text := range texts {
		name, value, ok := strings.Cut(text, "=")
		if !ok {
			return nil, fmt.Errorf("--index %q is not of the form name=value, such as %s=worker-1", text, indexer.NodeIndex)
		}
		if !slices.Contains(names, name) {
			return nil, fmt.Errorf("there is no index %q; there are %s", name, strings.Join(names, ", "))
		}
		all = append(all, indexValue{name, value})
	}
	return all, nil
}

// indexed are the keys that all indices have under the values asked for; nil if none was asked.
func (t *transport) indexed(store *indexer.Indexer) (map[string]bool, error) {
	if len(t.index) == 0 {
		return nil, nil
	}
	var found map[string]bool
	for _, i := range t.index {
		keys, err := store.IndexKeys(i.name, i.value)
		if err != nil {
			return nil, fmt.Errorf("index %s: %w", i.name, err)
		}
		here := map[string]bool{}
		for _, key := range keys {
			here[key] = found == nil || found[key]
		}
		found = here
	}
	return found, nil
}
