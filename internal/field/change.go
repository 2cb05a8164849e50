package field

import (
	"bytes"
	"slices"

	"github.com/kuberewind/kuberewind/patch"
)

// The operations of a change on the value at its path.
const (
	OpAdd     = "add"
	OpRemove  = "remove"
	OpReplace = "replace"
	OpReorder = "reorder" // the same elements of an array, in another order
)

// Change is one difference between two versions of an object.
type Change struct {
	Op       string
	Path     Path      // in the newer version; the last step of a removed value is that of the older version
	Old, New patch.Doc // nil if there is no value
}

// Changes returns the changes from one version to the next, in the order of the text. It matches elements of arrays by their
// name, not by their place. A nil version is one that does not exist. Changes returns nil if, and only if, the two versions
// are equal.
func Changes(before, after patch.Doc) []Change {
	switch {
	case before == nil && after == nil:
		return nil
	case before == nil:
		return []Change{{Op: OpAdd, New: after}}
	case after == nil:
		return []Change{{Op: OpRemove, Old: before}}
	}
	var c comparison
	c.values(nil, before, after)
	return c.found
}

// comparison collects the changes. Changes keep their paths, so paths are extended with slices.Concat, never in place.
type comparison struct{ found []Change }

func (c *comparison) add(op string, at Path, before, after patch.Doc) {
	c.found = append(c.found, Change{Op: op, Path: at, Old: before, New: after})
}

func (c *comparison) values(at Path, before, after patch.Doc) {
	switch {
	case bytes.Equal(before, after):
	case isObject(before) && isObject(after):
		c.objects(at, before, after)
	case isArray(before) && isArray(after):
		c.arrays(at, before, after)
	default:
		c.add(OpReplace, at, before, after)
	}
}

// objects compares two lists of members, which are sorted by key.
func (c *comparison) objects(at Path, before, after patch.Doc) {
	old, now := members(before), members(after)
	for len(old) > 0 || len(now) > 0 {
		switch {
		case len(now) == 0 || len(old) > 0 && old[0].key < now[0].key:
			c.add(OpRemove, at.key(old[0].key), old[0].value, nil)
			old = old[1:]
		case len(old) == 0 || now[0].key < old[0].key:
			c.add(OpAdd, at.key(now[0].key), nil, now[0].value)
			now = now[1:]
		default:
			c.values(at.key(now[0].key), old[0].value, now[0].value)
			old, now = old[1:], now[1:]
		}
	}
}

func (c *comparison) arrays(at Path, before, after patch.Doc) {
	old, now := members(before), members(after)
	if key := identity(old, now); key != "" {
		c.named(at, key, before, after)
		return
	}
	c.unnamed(at, old, now)
}

// named compares elements that have names. It reports a change of the order separately from changes of the content.
func (c *comparison) named(at Path, key string, before, after patch.Doc) {
	old, now := members(before), members(after)
	places := make(map[string]int, len(old))
	for i, m := range old {
		places[name(m.value, key)] = i
	}
	kept := make([]bool, len(old))
	last, reordered := -1, false
	var later comparison
	for i, m := range now {
		id := name(m.value, key)
		place, known := places[id]
		if !known {
			later.add(OpAdd, at.element(i, key, id), nil, m.value)
			continue
		}
		kept[place] = true
		reordered = reordered || place < last
		last = max(last, place)
		later.values(at.element(i, key, id), old[place].value, m.value)
	}
	for i, m := range old {
		if !kept[i] {
			c.add(OpRemove, at.element(i, key, name(m.value, key)), m.value, nil)
		}
	}
	c.found = append(c.found, later.found...)
	if reordered {
		c.add(OpReorder, at, before, after)
	}
}

// maxTable bounds the table of a longest common subsequence, in cells: arrays of 500 by 500 different elements. Longer
// arrays are compared place by place.
const maxTable = 250_000

// unnamed compares elements without names, by their text.
func (c *comparison) unnamed(at Path, old, now []member) {
	start := 0
	for start < len(old) && start < len(now) && bytes.Equal(old[start].value, now[start].value) {
		start++
	}
	oldEnd, newEnd := len(old), len(now)
	for oldEnd > start && newEnd > start && bytes.Equal(old[oldEnd-1].value, now[newEnd-1].value) {
		oldEnd, newEnd = oldEnd-1, newEnd-1
	}
	i, j := start, start
	for _, pair := range common(old[start:oldEnd], now[start:newEnd]) {
		c.compareRange(at, old, now, i, start+pair[0], j, start+pair[1])
		i, j = start+pair[0]+1, start+pair[1]+1
	}
	c.compareRange(at, old, now, i, oldEnd, j, newEnd)
}

// compareRange compares the elements between two common elements, place by place.
func (c *comparison) compareRange(at Path, old, now []member, i, oldEnd, j, newEnd int) {
	for ; i < oldEnd && j < newEnd; i, j = i+1, j+1 {
		c.values(at.index(j), old[i].value, now[j].value)
	}
	for ; i < oldEnd; i++ {
		c.add(OpRemove, at.index(i), old[i].value, nil)
	}
	for ; j < newEnd; j++ {
		c.add(OpAdd, at.index(j), nil, now[j].value)
	}
}

// common returns the index pairs of a longest common subsequence. It returns nil if the table would exceed maxTable.
func common(old, now []member) [][2]int {
	if len(old)*len(now) == 0 || len(old)*len(now) > maxTable {
		return nil
	}
	width := len(now) + 1
	lengths := make([]int32, (len(old)+1)*width) // of the rest from (i, j) on
	for i := len(old) - 1; i >= 0; i-- {
		for j := len(now) - 1; j >= 0; j-- {
			if bytes.Equal(old[i].value, now[j].value) {
				lengths[i*width+j] = lengths[(i+1)*width+j+1] + 1
			} else {
				lengths[i*width+j] = max(lengths[(i+1)*width+j], lengths[i*width+j+1])
			}
		}
	}
	var pairs [][2]int
	for i, j := 0, 0; i < len(old) && j < len(now); {
		switch {
		case bytes.Equal(old[i].value, now[j].value):
			pairs = append(pairs, [2]int{i, j})
			i, j = i+1, j+1
		case lengths[(i+1)*width+j] >= lengths[i*width+j+1]:
			i++
		default:
			j++
		}
	}
	return pairs
}

// identities are the members by which Kubernetes names the elements of its lists, the most specific first.
var identities = []string{"name", "type", "key", "uid", "mountPath", "devicePath", "containerPort", "port", "ip", "topologyKey", "id"}

// identity returns the member that gives each element of all arrays a name, unique within its array. It returns "" if there
// is none.
func identity(arrays ...[]member) string {
	if !slices.ContainsFunc(arrays, func(a []member) bool { return len(a) > 0 }) {
		return ""
	}
	for _, key := range identities {
		if !slices.ContainsFunc(arrays, func(a []member) bool { return !names(a, key) }) {
			return key
		}
	}
	return ""
}

func names(array []member, key string) bool {
	seen := make(map[string]bool, len(array))
	for _, m := range array {
		id := name(m.value, key)
		if id == "" || seen[id] {
			return false
		}
		seen[id] = true
	}
	return true
}

// name returns the value of the member key of an element; "" if it is missing, null or not a scalar.
func name(element patch.Doc, key string) string {
	if !isObject(element) {
		return ""
	}
	value, ok := patch.Get(element, "/"+key)
	if !ok || !IsScalar(value) || string(value) == "null" {
		return ""
	}
	return plainText(value)
}
