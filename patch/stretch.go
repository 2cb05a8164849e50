package patch

import "sort"

// A stretch is a run of elements on both sides that is to be aligned.
type stretch struct {
	match      []counterpart // of olds
	olds, news []sketch
	first      int // index of the first of news
}

// part is the stretch from one pair of indices to another.
func (s stretch) part(i, j, iEnd, jEnd int) stretch {
	return stretch{s.match[i:iEnd], s.olds[i:iEnd], s.news[j:jEnd], s.first + j}
}

// An anchoring says by which hash elements are taken to belong together without looking at their neighbours.
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

// stretch aligns a stretch of any length: a long one is cut at anchors, and what lies between them is aligned likewise.
func (l *aligner) stretch(s stretch, by anchoring) {
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
		l.stretch(s.part(i, j, a.old, a.new), by+1)
		s.match[a.old] = counterpart(s.first + a.new)
		i, j = a.old+1, a.new+1
	}
	l.stretch(s.part(i, j, len(s.olds), len(s.news)), by+1)
}

// An anchor is a pair of elements that belong together.
type anchor struct{ old, new int }

// anchors pairs the first element of each hash with the first of the same hash on the other side, the second with the second,
// and so on. Of these pairs it keeps the most that have the same order on both sides.
func (s stretch) anchors(by anchoring) []anchor {
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

// longestIncreasing keeps as many pairs as can be kept so that both sides increase. The old side does already.
func longestIncreasing(pairs []anchor) []anchor {
	if len(pairs) == 0 {
		return nil
	}
	tails := make([]int, 0, len(pairs)) // tails[n] ends the run of n+1 pairs that ends lowest
	before := make([]int, len(pairs))   // the pair before each in its run
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
