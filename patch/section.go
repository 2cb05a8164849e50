package patch

import "sort"

// A section is a run of elements on both sides that the aligner aligns together.
type section struct {
	match      []counterpart // of olds
	olds, news []sketch
	first      int // index of the first of news
}

// part returns the section from one pair of indices to another.
func (s section) part(i, j, iEnd, jEnd int) section {
	return section{s.match[i:iEnd], s.olds[i:iEnd], s.news[j:jEnd], s.first + j}
}

// An anchoring says which hash identifies elements that belong together, without a look at their neighbours.
type anchoring int

const (
	byText anchoring = iota
	byIdentity
	byPlace
)

func (a anchoring) hash(s *sketch) uint64 {
	if a == byText {
		return s.hash
	}
	return s.identity
}

// alignSection aligns a section of any length. It cuts a long one at anchors, and aligns the sections between them in
// the same way.
func (l *aligner) alignSection(s section, by anchoring) {
	switch {
	case len(s.olds) == 0 || len(s.news) == 0:
		return
	case len(s.olds) <= maxCells/len(s.news):
		l.best(s)
		return
	case by == byPlace:
		pairInOrder(s.match, s.first, len(s.news))
		return
	}
	i, j := 0, 0
	for _, a := range s.anchors(by) {
		l.alignSection(s.part(i, j, a.old, a.new), by+1)
		s.match[a.old] = counterpart(s.first + a.new)
		i, j = a.old+1, a.new+1
	}
	l.alignSection(s.part(i, j, len(s.olds), len(s.news)), by+1)
}

// An anchor is a pair of elements that belong together.
type anchor struct{ old, new int }

// anchors pairs the first element of each hash with the first of the same hash on the other side, the second with the
// second, and so on. It then keeps the largest set of pairs that have the same order on both sides.
func (s section) anchors(by anchoring) []anchor {
	next := make([]int32, len(s.news)) // the next of news with the same hash
	head := make(map[uint64]int32, len(s.news))
	for j := len(s.news) - 1; j >= 0; j-- {
		hash := by.hash(&s.news[j])
		next[j] = none
		if k, ok := head[hash]; ok {
			next[j] = k
		}
		head[hash] = int32(j)
	}
	var pairs []anchor
	for i := range s.olds {
		hash := by.hash(&s.olds[i])
		if j, ok := head[hash]; ok && j >= 0 && hash != 0 {
			pairs = append(pairs, anchor{i, int(j)})
			head[hash] = next[j]
		}
	}
	return longestIncreasing(pairs)
}

// longestIncreasing keeps the largest set of pairs in which both sides increase. The old side already increases.
func longestIncreasing(pairs []anchor) []anchor {
	if len(pairs) == 0 {
		return nil
	}
	tails := make([]int, 0, len(pairs)) // tails[n] is the end of the run of n+1 pairs with the lowest end
	before := make([]int, len(pairs))   // the previous pair in the run of each
	for p := range pairs {
		n := sort.Search(len(tails), func(n int) bool { return pairs[tails[n]].new >= pairs[p].new })
		if before[p] = -1; n > 0 {
			before[p] = tails[n-1]
		}
		if n == len(tails) {
			tails = append(tails, p)
		} else {
			tails[n] = p
		}
	}
	kept := make([]anchor, len(tails))
	for n, p := len(tails)-1, tails[len(tails)-1]; n >= 0; n, p = n-1, before[p] {
		kept[n] = pairs[p]
	}
	return kept
}
