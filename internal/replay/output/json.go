package output

import (
	"encoding/json"
	"io"

	"github.com/kuberewind/kuberewind/internal/render"
)

// WriteJSON writes a value as JSON that cannot control a terminal. If indented is false, it writes one line. If it is true,
// it indents by two spaces.
func WriteJSON(out io.Writer, value any, indented bool) error {
	marshal := json.Marshal
	if indented {
		marshal = func(v any) ([]byte, error) { return json.MarshalIndent(v, "", "  ") }
	}
	text, err := marshal(value)
	if err != nil {
		return err
	}
	_, err = out.Write(append(render.JSON(text), '\n'))
	return err
}
