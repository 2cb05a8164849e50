package change

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Counts is the number of folded deltas of each class and kind. The zero value is empty.
type Counts struct {
	of map[counted]int
}

type counted struct {
	class Class
	kind  string
}

// Add counts one delta of an object of a kind, such as Pod.
func (c *Counts) Add(class Class, kind string) {
	if c.of == nil {
		c.of = map[counted]int{}
	}
	c.of[counted{class, kind}]++
}

// Total returns the number of counted deltas.
func (c *Counts) Total() (n int) {
	for _, count := range c.of {
		n += count
	}
	return n
}

// String returns the counts, largest first: "380 Pod status, 232 Events". It returns "" if nothing was counted.
func (c *Counts) String() string {
	all := slices.SortedFunc(maps.Keys(c.of), func(a, b counted) int {
		return cmp.Or(cmp.Compare(c.of[b], c.of[a]), cmp.Compare(a.kind, b.kind), cmp.Compare(a.class, b.class))
	})
	parts := make([]string, len(all))
	for i, what := range all {
		parts[i] = fmt.Sprintf("%d %s", c.of[what], what.label(c.of[what]))
	}
	return strings.Join(parts, ", ")
}

// label names n deltas of that class and kind.
func (w counted) label(n int) string {
	label := w.kind
	switch w.class {
	case Status, ManagedFields:
		return w.kind + " " + string(w.class)
	case Binding, Resync, Termination:
		label += " " + string(w.class)
	case LeaderElection:
		label += " leader election"
	default: // the kind is enough
	}
	if n == 1 || strings.HasSuffix(label, "s") { // Endpoints is a plural
		return label
	}
	return label + "s"
}
