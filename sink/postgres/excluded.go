package postgres

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// ExcludedUIDs are the objects that a label filter leaves out, in no order.
func (st *Stream) ExcludedUIDs() []types.UID {
	st.mu.RLock()
	defer st.mu.RUnlock()
	return slices.Collect(maps.Keys(st.excluded))
}
