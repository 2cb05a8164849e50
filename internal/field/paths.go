package field

import (
	"slices"
	"strconv"
	"strings"

	"github.com/kuberewind/kuberewind/patch"
)

// Paths returns the path of each scalar of an object as a pattern for --path, sorted, without duplicates and bookkeeping. An
// element of a list has two paths: one with its name, if it has one, and one with [*].
func Paths(doc patch.Doc) []string {
	var w pathWalk
	w.below("", doc)
	slices.Sort(w.found)
	return slices.Compact(w.found)
}

type pathWalk struct{ found []string }

func (w *pathWalk) below(at string, value patch.Doc) {
	inside := members(value)
	switch {
	case slices.Contains(bookkeeping, at):
	case isArray(value):
		key := identity(inside)
		for _, m := range inside {
			w.below(at+"[*]", m.value)
			if key != "" {
				w.below(at+namedStep(key, name(m.value, key)), m.value)
			}
		}
	case len(inside) > 0:
		for _, m := range inside {
			w.below(strings.TrimPrefix(at+memberStep(m.key), "."), m.value)
		}
	default:
		w.found = append(w.found, at)
	}
}

// memberStep returns the step of a path to a member of an object.
func memberStep(member string) string {
	if plain(member) {
		return "." + member
	}
	return "[" + inBrackets(member) + "]"
}

// placeStep returns the step of a path to an element without a name.
func placeStep(place int) string { return "[" + strconv.Itoa(place) + "]" }

// namedStep returns the step of a path to an element that its member key names.
func namedStep(key, name string) string {
	if IsNumber(name) {
		return "[" + key + "=" + name + "]"
	}
	return "[" + inBrackets(name) + "]"
}
