package field

import (
	"slices"
	"strconv"
	"strings"

	"github.com/kuberewind/kuberewind/patch"
)

// Paths gives the path of each scalar of an object as a pattern for --path: in order, each once, without bookkeeping. An element of a
// list comes by what names it, if anything does, and as [*].
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

// memberStep is how a path goes on to a member of an object.
func memberStep(member string) string {
	if plain(member) {
		return "." + member
	}
	return "[" + inBrackets(member) + "]"
}

// placeStep is how a path goes on to an element that nothing names.
func placeStep(place int) string { return "[" + strconv.Itoa(place) + "]" }

// namedStep is how a path goes on to an element that a member of it names.
func namedStep(key, name string) string {
	if IsNumber(name) {
		return "[" + key + "=" + name + "]"
	}
	return "[" + inBrackets(name) + "]"
}
