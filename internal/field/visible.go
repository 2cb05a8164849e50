package field

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/kuberewind/kuberewind/patch"
)

// bookkeeping lists the fields that the server changes with every write. They do not show what a client did.
var bookkeeping = []string{"metadata.managedFields", "metadata.resourceVersion", "metadata.generation", "status.observedGeneration"}

// isBookkeeping reports whether a change is at or below one of these fields.
func isBookkeeping(c Change) bool {
	if len(c.Path) < 2 || c.Path[0].place >= 0 || c.Path[1].place >= 0 {
		return false
	}
	return slices.Contains(bookkeeping, c.Path[0].member+"."+c.Path[1].member)
}

// Visible returns the changes without bookkeeping.
func Visible(all []Change) []Change {
	return slices.DeleteFunc(slices.Clone(all), isBookkeeping)
}

// Expanded splits an added or removed map of scalars, such as labels, into one change for each member. It keeps other
// changes.
func Expanded(all []Change) []Change {
	var out []Change
	for _, c := range all {
		out = append(out, c.parts()...)
	}
	return out
}

func (c Change) parts() []Change {
	value := c.New
	if c.Op == OpRemove {
		value = c.Old
	}
	if c.Op != OpAdd && c.Op != OpRemove || len(c.Path) == 0 || c.Path[len(c.Path)-1].place >= 0 || !isObject(value) {
		return []Change{c}
	}
	inside := members(value)
	if len(inside) == 0 || slices.ContainsFunc(inside, func(m member) bool { return isArray(m.value) || isObject(m.value) && len(m.value) > len("{}") }) {
		return []Change{c}
	}
	var out []Change
	for _, m := range inside {
		part := Change{Op: c.Op, Path: c.Path.key(m.key)}
		if c.Op == OpAdd {
			part.New = m.value
		} else {
			part.Old = m.value
		}
		out = append(out, part)
	}
	return out
}

// WithoutBookkeeping returns an object without the bookkeeping fields.
func WithoutBookkeeping(doc patch.Doc) patch.Doc {
	var steps bytes.Buffer
	for _, name := range bookkeeping {
		pointer := "/" + strings.ReplaceAll(name, ".", "/")
		if _, ok := patch.Get(doc, pointer); ok {
			fmt.Fprintf(&steps, `%s{"op":"remove","path":%q}`, map[bool]string{true: "", false: ","}[steps.Len() == 0], pointer)
		}
	}
	less, err := patch.Apply(doc, []byte("["+steps.String()+"]"))
	if err != nil {
		return doc
	}
	return less
}
