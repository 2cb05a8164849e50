package selector

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kuberewind/kuberewind/indexer"
	"github.com/kuberewind/kuberewind/patch"
)

// An Index is a built-in index of package indexer with a value, as in --index.
type Index struct{ Name, Value string }

// ParseIndices parses texts of the form name=value. The error names the known indices.
func ParseIndices(texts []string) ([]Index, error) {
	names := slices.Sorted(maps.Keys(indexer.BuiltIn()))
	var all []Index
	for _, text := range texts {
		name, value, ok := strings.Cut(text, "=")
		if !ok {
			return nil, fmt.Errorf("--index %q is not of the form name=value, such as %s=worker-1", text, indexer.NodeIndex)
		}
		if !slices.Contains(names, name) {
			return nil, fmt.Errorf("unknown index %q; use one of %s", name, strings.Join(names, ", "))
		}
		all = append(all, Index{name, value})
	}
	return all, nil
}

// Holds reports whether the index holds an object under its value.
func (i Index) Holds(doc patch.Doc) bool {
	if doc == nil {
		return false
	}
	values, err := indexer.BuiltIn()[i.Name]([]byte(doc))
	return err == nil && slices.Contains(values, i.Value)
}
