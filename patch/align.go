package patch

import (
	"hash/maphash"
	"math/bits"
	"slices"
)

const (
	// maxCells bounds the table for the best alignment of two sections of elements: 64 by 64. The aligner first cuts
	// longer sections into shorter ones, at elements that certainly belong together.
	maxCells = 4096
	// maxEffort bounds how many bytes are hashed, as a multiple of the size of the documents. Without it, arrays nested
	// in arrays would be hashed once per level.
	maxEffort = 16
	// opText is roughly the length of an operation without its values.
	opText = 64
)

// A counterpart of an element of the old array is the index of an element of the new array, or unmatched; see crossing.
type counterpart int32

// unmatched is the counterpart of an element that is removed.
const unmatched counterpart = -1

// crossing returns a counterpart that breaks the order of the others: the element must be moved.
func crossing(place int) counterpart { return counterpart(-2 - place) }

func (c counterpart) crosses() bool { return c < unmatched }

// place returns the index of a counterpart, or unmatched.
func (c counterpart) place() int {
	if c.crosses() {
		return int(-2 - c)
	}
	return int(c)
}

// seed is the seed of all hashes. The pairing of elements depends on it only if hashes collide. Hashes of texts hardly
// ever collide. The six bits of each part often do, so the number of common parts is an estimate.
var seed = maphash.MakeSeed()

// An aligner decides which elements of two arrays belong together, so that the edits are short and describe the change.
type aligner struct {
	from, to   *tape
	effort     int
	matches    []counterpart // results in use, innermost last
	olds, news []sketch
	cells      []int
	taken      []bool // by index of news: it is a counterpart
}

// A sketch is what the aligner knows of an element.
type sketch struct {
	hash     uint64 // of the text
	identity uint64 // of the members that identify the element in its array; 0 if there are none
	parts    uint64 // a bit for each member or element
	size     int
	stays    bool // the other side has another version of it, by its identity
}

func (l *aligner) reset(from, to *tape) {
	l.from, l.to, l.matches = from, to, l.matches[:0]
	l.effort = maxEffort * (len(from.text) + len(to.text))
}

func (l *aligner) size() int {
	return cap(l.matches) + cap(l.olds) + cap(l.news) + cap(l.cells) + cap(l.taken)
}

// align returns for each of olds its counterpart among news. Counterparts that do not cross have the same order on both
// sides. The caller releases the result after use; the last result is released first.
func (l *aligner) align(olds, news []int32) []counterpart {
	base := len(l.matches)
	for range olds {
		l.matches = append(l.matches, unmatched)
	}
	match := l.matches[base:len(l.matches):len(l.matches)]
	switch {
	case len(olds) == 0 || len(news) == 0:
	case len(olds) == 1 && len(news) == 1 || !l.afford(olds, news):
		pairInOrder(match, 0, len(news))
	default:
		l.olds, l.news = l.from.sketches(l.olds, olds), l.to.sketches(l.news, news)
		l.findStaying()
		l.alignSection(section{match: match, olds: l.olds, news: l.news}, byText)
		l.cross(match)
	}
	return match
}

// long reports whether there are too many elements to compare each old one with each new one.
func (l *aligner) long() bool { return len(l.olds) > maxCells/len(l.news) }

// findStaying marks the elements whose identity is on both sides, at any place. Such an element must not become another
// one.
func (l *aligner) findStaying() {
	if l.long() {
		return
	}
	for i := range l.olds {
		for j := range l.news {
			if x, y := &l.olds[i], &l.news[j]; x.isAnother(y) {
				x.stays, y.stays = true, true
			}
		}
	}
}

// cross pairs elements that have moved, in short arrays. It first pairs elements of equal text, then elements of equal
// identity that share half of their parts. The entries of managedFields are ordered by time, so they move whenever
// another manager writes.
func (l *aligner) cross(match []counterpart) {
	if l.long() || !slices.Contains(match, unmatched) {
		return
	}
	l.taken = append(l.taken[:0], make([]bool, len(l.news))...)
	for _, m := range match {
		if m != unmatched {
			l.taken[m] = true
		}
	}
	for _, belong := range [...]func(x, y *sketch) bool{(*sketch).isText, (*sketch).isAnother} {
		for i := range match {
			for j := 0; match[i] == unmatched && j < len(l.news); j++ {
				if !l.taken[j] && belong(&l.olds[i], &l.news[j]) {
					match[i], l.taken[j] = crossing(j), true
				}
			}
		}
	}
}

// isText reports whether two elements have the same text.
func (s *sketch) isText(o *sketch) bool { return s.hash == o.hash && s.size == o.size }

// isAnother reports whether one element is another version of the other.
func (s *sketch) isAnother(o *sketch) bool {
	return s.identity == o.identity && s.identity != 0 &&
		2*bits.OnesCount64(s.parts&o.parts) >= max(bits.OnesCount64(s.parts), bits.OnesCount64(o.parts))
}

func (l *aligner) release(match []counterpart) {
	l.matches = l.matches[:len(l.matches)-len(match)]
}

// afford reports whether the remaining effort suffices to hash the elements, and takes it.
func (l *aligner) afford(olds, news []int32) bool {
	l.effort -= int(l.from.nodes[olds[len(olds)-1]].end - l.from.nodes[olds[0]].start)
	l.effort -= int(l.to.nodes[news[len(news)-1]].end - l.to.nodes[news[0]].start)
	return l.effort >= 0
}

// pairInOrder pairs the first with the first, and so on; the news begin at index first.
func pairInOrder(match []counterpart, first, count int) {
	for i := range min(len(match), count) {
		match[i] = counterpart(first + i)
	}
}

// sketches describes elements. It overwrites dst.
func (t *tape) sketches(dst []sketch, elements []int32) []sketch {
	dst = dst[:0]
	for _, element := range elements {
		dst = append(dst, t.sketch(element))
	}
	return dst
}

func (t *tape) sketch(i int32) sketch {
	text := t.span(i)
	s := sketch{hash: maphash.Bytes(seed, text), size: len(text)}
	switch text[0] {
	case '{':
		t.sketchObject(&s, i)
	case '[':
		for element := i + 1; element < t.nodes[i].next; element = t.nodes[element].next {
			s.parts |= 1 << (maphash.Bytes(seed, t.span(element)) & 63)
		}
	}
	return s
}

func (t *tape) sketchObject(s *sketch, i int32) {
	best := len(identities)
	var manager uint64
	for key := i + 1; key < t.nodes[i].next; key = t.nodes[key+1].next {
		hash := maphash.Bytes(seed, t.text[t.nodes[key].start:t.nodes[key+1].end])
		s.parts |= 1 << (hash & 63)
		switch rank := identityRank(t.key(key)); {
		case rank == qualifier:
			manager = manager*31 + hash
		case rank < best:
			best, s.identity = rank, hash
		}
	}
	if best == managerRank {
		s.identity += manager
	}
}

// identities are the members by which Kubernetes identifies the elements of a list, the most specific first.
var identities = [...]string{
	"uid", "manager", "mountPath", "devicePath", "name", "type", "key", "id", "ip", "topologyKey", "containerPort", "port",
}

const (
	managerRank = 1
	// qualifier is the rank of the members that distinguish the entries of one field manager.
	qualifier = 1000
)

// identityRank returns the place of a key among the identities, or their number.
func identityRank(key []byte) int {
	switch string(key) {
	case "operation", "subresource":
		return qualifier
	}
	for rank, name := range identities {
		if string(key) == name {
			return rank
		}
	}
	return len(identities)
}

// worth estimates how much text an edit of one element into the other saves, compared with removing and adding.
func worth(x, y *sketch) int {
	size := x.size + y.size
	if x.isText(y) {
		return 2*size + 2*opText
	}
	if x.identity != y.identity && (x.stays || y.stays) {
		return -1
	}
	gain := opText
	if x.identity == y.identity && x.identity != 0 {
		gain += size + opText
	}
	if parts := max(bits.OnesCount64(x.parts), bits.OnesCount64(y.parts)); parts > 0 {
		gain += size * bits.OnesCount64(x.parts&y.parts) / (2 * parts)
	}
	return gain
}

// best aligns a short section so that the sum of the worth of its pairs is greatest.
func (l *aligner) best(s section) {
	n, m := len(s.olds), len(s.news)
	width := m + 1
	cells := l.table((n + 1) * width)
	for i := n - 1; i >= 0; i-- {
		for j := m - 1; j >= 0; j-- {
			pair := cells[(i+1)*width+j+1] + worth(&s.olds[i], &s.news[j])
			cells[i*width+j] = max(pair, cells[(i+1)*width+j], cells[i*width+j+1])
		}
	}
	for i, j := 0, 0; i < n && j < m; {
		switch at := cells[i*width+j]; {
		case at == cells[(i+1)*width+j+1]+worth(&s.olds[i], &s.news[j]):
			s.match[i] = counterpart(s.first + j)
			i, j = i+1, j+1
		case at == cells[(i+1)*width+j]:
			i++
		default:
			j++
		}
	}
}

// table returns cleared cells.
func (l *aligner) table(size int) []int {
	if cap(l.cells) < size {
		l.cells = make([]int, size)
	}
	cells := l.cells[:size]
	clear(cells)
	return cells
}
