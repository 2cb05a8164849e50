package patch

import (
	"hash/maphash"
	"math/bits"
)

const (
	// maxCells bounds the table for the best alignment of two stretches of elements: 64 by 64. Longer ones are cut into
	// shorter ones first, at elements that belong together beyond doubt.
	maxCells = 4096
	// maxEffort bounds how many bytes are hashed, as a multiple of the size of the documents: arrays nested in arrays would
	// be hashed once per level.
	maxEffort = 16
	// opText is about what one operation costs besides its values.
	opText = 64
	// unmatched is the match of an element that is removed.
	unmatched int32 = -1
)

// seed is that of all hashes. Which elements are paired does not depend on it unless two hashes collide.
var seed = maphash.MakeSeed()

// An aligner decides which elements of two arrays belong together, so that the edits come out short and say what happened.
type aligner struct {
	from, to   *tape
	effort     int
	matches    []int32 // results in use, innermost last
	olds, news []sketch
	cells      []int
}

// A sketch is what the aligner knows of an element.
type sketch struct {
	hash     uint64 // of the text
	identity uint64 // of the members that name the element among its neighbours; 0 if there are none
	parts    uint64 // a bit for each member or element
	size     int
}

func (l *aligner) reset(from, to *tape) {
	l.from, l.to, l.matches = from, to, l.matches[:0]
	l.effort = maxEffort * (len(from.text) + len(to.text))
}

func (l *aligner) size() int { return cap(l.matches) + cap(l.olds) + cap(l.news) + cap(l.cells) }

// align gives for each of olds the index among news of its counterpart, or unmatched. Counterparts are in the same order on
// both sides. The result is to be released after use, the last one first.
func (l *aligner) align(olds, news []int32) []int32 {
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
		l.stretch(stretch{match: match, olds: l.olds, news: l.news}, byText)
	}
	return match
}

func (l *aligner) release(match []int32) {
	l.matches = l.matches[:len(l.matches)-len(match)]
}

// afford reports whether there is effort left to hash the elements, and takes it.
func (l *aligner) afford(olds, news []int32) bool {
	l.effort -= int(l.from.nodes[olds[len(olds)-1]].end - l.from.nodes[olds[0]].start)
	l.effort -= int(l.to.nodes[news[len(news)-1]].end - l.to.nodes[news[0]].start)
	return l.effort >= 0
}

// pairInOrder pairs the first with the first, and so on; the news begin at index first.
func pairInOrder(match []int32, first, count int) {
	for i := range min(len(match), count) {
		match[i] = int32(first + i)
	}
}

// sketches describes elements. dst is overwritten.
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

// identities are the members by which Kubernetes tells the elements of a list apart, the most telling first.
var identities = [...]string{
	"uid", "manager", "mountPath", "devicePath", "name", "type", "key", "id", "ip", "topologyKey", "containerPort", "port",
}

const (
	managerRank = 1
	// qualifier is the rank of the members that tell entries of one field manager apart.
	qualifier = 1000
)

// identityRank is the place of a key among the identities, or their number.
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

// worth is how much text it saves, by estimate, to edit one element into the other instead of removing and adding.
func worth(x, y *sketch) int {
	size := x.size + y.size
	if x.hash == y.hash && x.size == y.size {
		return 2*size + 2*opText
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

// best aligns a short stretch so that the sum of what the pairs are worth is the greatest.
func (l *aligner) best(s stretch) {
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
			s.match[i] = int32(s.first + j)
			i, j = i+1, j+1
		case at == cells[(i+1)*width+j]:
			i++
		default:
			j++
		}
	}
}

// table gives cleared cells.
func (l *aligner) table(size int) []int {
	if cap(l.cells) < size {
		l.cells = make([]int, size)
	}
	cells := l.cells[:size]
	clear(cells)
	return cells
}
