// Package paths defines how answers of the timeline show the differences of an object.
package paths

import (
	"encoding/json"

	"github.com/kuberewind/kuberewind/internal/field"
)

// A Change is one changed path. Path is a JSON pointer; Field is the form that people write.
type Change struct {
	Op    string          `json:"op"`
	Path  string          `json:"path"`
	Field string          `json:"field"`
	Old   json.RawMessage `json:"old,omitempty"`
	New   json.RawMessage `json:"new,omitempty"`
}

// Of converts changes to this form.
func Of(all []field.Change) []Change {
	out := make([]Change, 0, len(all))
	for _, c := range field.JSONOf(all) {
		out = append(out, Change{Op: c.Op, Path: c.Pointer, Field: c.Path, Old: c.Old, New: c.New})
	}
	return out
}
