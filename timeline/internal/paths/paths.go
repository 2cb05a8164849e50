// Package paths has the form in which answers of the timeline show what is different in an object.
package paths

import (
	"encoding/json"

	"github.com/kuberewind/kuberewind/internal/field"
)

// A Change is one path that is different. Path is a JSON pointer; Field is what people write.
type Change struct {
	Op    string          `json:"op"`
	Path  string          `json:"path"`
	Field string          `json:"field"`
	Old   json.RawMessage `json:"old,omitempty"`
	New   json.RawMessage `json:"new,omitempty"`
}

// Of gives changes in that form.
func Of(all []field.Change) []Change {
	out := make([]Change, 0, len(all))
	for _, c := range field.JSONOf(all) {
		out = append(out, Change{Op: c.Op, Path: c.Pointer, Field: c.Path, Old: c.Old, New: c.New})
	}
	return out
}
