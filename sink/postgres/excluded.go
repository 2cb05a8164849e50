package postgres

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// ExcludedUIDs returns the objects that a label filter excludes, in no order.
func (st *Stream) ExcludedUIDs() []types.UID {
	st.mu.RLock()
	defer st.mu.RUnlock()
	return slices.Collect(maps.Keys(st.excluded))
}
