package get

import (
	"fmt"

	"github.com/kuberewind/kuberewind/indexer"
)

// indexed returns the keys that all requested indices hold under their values; nil if the user requested no index.
func (t *transport) indexed(store *indexer.Indexer) (map[string]bool, error) {
	if len(t.index) == 0 {
		return nil, nil
	}
	var found map[string]bool
	for _, i := range t.index {
		keys, err := store.IndexKeys(i.Name, i.Value)
		if err != nil {
			return nil, fmt.Errorf("index %s: %w", i.Name, err)
		}
		here := map[string]bool{}
		for _, key := range keys {
			here[key] = found == nil || found[key]
		}
		found = here
	}
	return found, nil
}
