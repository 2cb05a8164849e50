package blame

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/kuberewind/kuberewind/internal/render"
	"github.com/kuberewind/kuberewind/patch"
)

// A Line is one line of an object as YAML.
type Line struct {
	Text    string
	Pointer string // of the value that begins on it, by RFC 6901; of a value of several lines, each has it
	Origin  *Origin
}

// ErrNothing says that a Fold has read no version.
var ErrNothing = errors.New("no version was read")

// Lines gives the last version as YAML, as kubectl writes it. Without managedFields, which say nothing to a reader, unless they are asked for.
func (f *Fold) Lines(managedFields bool) ([]Line, error) {
	if f.doc == nil {
		return nil, ErrNothing
	}
	doc := f.doc
	if !managedFields {
		doc = withoutManagedFields(doc)
	}
	text, err := render.YAML(doc)
	if err != nil {
		return nil, err
	}
	var parsed yaml.Node
	if err := yaml.Unmarshal(text, &parsed); err != nil || len(parsed.Content) != 1 {
		return nil, fmt.Errorf("find the lines of the object: %w", err)
	}
	var w lineWriter
	for line := range strings.SplitSeq(strings.TrimSuffix(string(text), "\n"), "\n") {
		w.lines = append(w.lines, Line{Text: line})
	}
	w.mark(parsed.Content[0].Line, "", f.root)
	w.walk(parsed.Content[0], "", f.root)
	w.fill()
	return w.lines, nil
}

func withoutManagedFields(doc patch.Doc) patch.Doc {
	less, err := patch.Apply(doc, []byte(`[{"op":"remove","path":"/metadata/managedFields"}]`))
	if err != nil {
		return doc // it has none
	}
	return less
}

// A lineWriter finds what each line says. The text is parsed again: the encoder does not tell where it wrote what.
type lineWriter struct{ lines []Line }

// mark notes what begins on a line. The innermost of several comes last, and stays.
func (w *lineWriter) mark(number int, pointer string, n *node) {
	w.lines[number-1].Pointer, w.lines[number-1].Origin = pointer, n.origin
}

func (w *lineWriter) walk(y *yaml.Node, pointer string, n *node) {
	switch y.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(y.Content); i += 2 {
			key, value := y.Content[i], y.Content[i+1]
			member := n.members[key.Value]
			if member == nil {
				member = &node{origin: n.origin} // U+FFFD stands in its key for what is no Unicode
			}
			at := pointer + "/" + escaped(key.Value)
			w.mark(key.Line, at, member)
			w.walk(value, at, member)
		}
	case yaml.SequenceNode:
		for i, element := range y.Content {
			at := pointer + "/" + strconv.Itoa(i)
			w.mark(element.Line, at, n.elements[i])
			w.walk(element, at, n.elements[i])
		}
	default: // A scalar was marked.
	}
}

func escaped(token string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(token) }

// fill gives the later lines of a text what its first line has.
func (w *lineWriter) fill() {
	for i := range w.lines {
		if w.lines[i].Origin == nil && i > 0 {
			w.lines[i].Pointer, w.lines[i].Origin = w.lines[i-1].Pointer, w.lines[i-1].Origin
		}
	}
}
