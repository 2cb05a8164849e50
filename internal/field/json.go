package field

import (
	"encoding/json"

	"github.com/kuberewind/kuberewind/patch"
)

// JSON is one change in the JSON form of the program's output.
type JSON struct {
	Op      string          `json:"op"`
	Path    string          `json:"path"`
	Pointer string          `json:"pointer"`
	Old     json.RawMessage `json:"old,omitempty"`
	New     json.RawMessage `json:"new,omitempty"`
}

// JSONOf converts changes to their JSON form.
func JSONOf(all []Change) []JSON {
	out := make([]JSON, 0, len(all))
	for _, c := range all {
		out = append(out, JSON{Op: c.Op, Path: c.Path.String(), Pointer: c.Path.Pointer(), Old: Raw(c.Old), New: Raw(c.New)})
	}
	return out
}

// Raw returns a value as JSON that every reader accepts: U+FFFD replaces bytes that are not UTF-8.
func Raw(value patch.Doc) json.RawMessage {
	if value == nil {
		return nil
	}
	safe, _ := patch.SafeForSQL(value)
	return safe
}
