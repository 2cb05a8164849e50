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
	Pointer string // of the value that begins on the line, by RFC 6901; each line of a value of several lines has it
	Origin  *Origin
}

// ErrNothing says that a Fold has read no version.
var ErrNothing = errors.New("no version was read")

// Lines returns the last version as YAML, in the form that kubectl writes. It omits managedFields unless the parameter
// requests them.
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
		return doc // the object has none
	}
	return less
}

// A lineWriter finds the value of each line. It parses the text again, because the encoder does not report positions.
type lineWriter struct{ lines []Line }

// mark sets the value that begins on a line. If several begin there, the innermost comes last and remains.
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
				member = &node{origin: n.origin} // the key contains U+FFFD in place of invalid Unicode
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

// fill copies the value of the first line of a text to its later lines.
func (w *lineWriter) fill() {
	for i := range w.lines {
		if w.lines[i].Origin == nil && i > 0 {
			w.lines[i].Pointer, w.lines[i].Origin = w.lines[i-1].Pointer, w.lines[i-1].Origin
		}
	}
}
