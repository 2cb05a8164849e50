package measure

import (
	"cmp"
	"slices"
)

// turns gives the ways of each round, by their places and in order. Ways that run once come last in the first round. All others
// take turns, so that pages to write, a heap or a warm cache fall on all alike: see [orders].
func turns(ways []Way, rounds int) [][]int {
	var each, once []int
	for i, way := range ways {
		if way.Once {
			once = append(once, i)
		} else {
			each = append(each, i)
		}
	}
	all := orders(len(each), rounds)
	for _, order := range all {
		for i, place := range order {
			order[i] = each[place]
		}
	}
	if rounds > 0 {
		all[0] = append(all[0], once...)
	}
	return all
}

// orders gives the order of n ways in each round: the rows of a Williams design, all of them before one comes again. After any
// number of rounds, one way has begun at most one round more than another.
//
// Within rounds, if n is even, one pair has followed each other at most once more than another pair. If n is odd, it is at most
// twice, which three rounds of three ways cannot improve. After whole designs, all pairs have followed each other equally
// often.
//
// A round's first way follows the last way of the round before. Of the rows that are left, the next is one that keeps this even
// too. The orders of the first rounds do not depend on the number of rounds, so that an experiment that is resumed goes on with
// the same.
func orders(n, rounds int) [][]int {
	d := design{n: n, begun: make([]int, n), followed: make([]int, n*n)}
	all := make([][]int, rounds)
	for round := range all {
		all[round] = d.next()
	}
	return all
}

// A design has some ways take turns.
type design struct {
	n        int
	left     [][]int // rows that are not taken yet
	last     []int   // the row before
	begun    []int   // how many rounds each has begun
	followed []int   // how often each has come directly after each: that after this at this*n+that
}

// next takes a row whose first way has begun the fewest rounds. Of several it takes the one with the rarest successions.
func (d *design) next() []int {
	if d.n == 0 {
		return nil
	}
	if len(d.left) == 0 {
		d.left = williams(d.n)
	}
	best := slices.MinFunc(d.left, func(a, b []int) int {
		return cmp.Or(d.begun[a[0]]-d.begun[b[0]], d.times(a)-d.times(b))
	})
	d.begun[best[0]]++
	for _, s := range d.successions(best) {
		d.followed[s]++
	}
	d.left = slices.DeleteFunc(d.left, func(row []int) bool { return slices.Equal(row, best) })
	d.last = best
	return best
}

// times is how often there were the successions that a row would bring.
func (d *design) times(row []int) (sum int) {
	for _, s := range d.successions(row) {
		sum += d.followed[s]
	}
	return sum
}

// successions are the successions that a row brings, with that from the row before, by their places in followed.
func (d *design) successions(row []int) (all []int) {
	if len(d.last) > 0 {
		all = append(all, d.last[d.n-1]*d.n+row[0])
	}
	for i := range row[1:] {
		all = append(all, row[i]*d.n+row[i+1])
	}
	return all
}

// williams gives the rows of a design for n ways that is balanced for the effects of each on the next. Each way has each place
// equally often, and comes directly after each other one equally often. If n is even, that takes n rows. If n is odd, the
// square has only half of the successions, and its mirror images between the rows have the other half: 2n rows. (E. J.
// Williams, Experimental designs balanced for the estimation of residual effects of treatments, 1949.)
func williams(n int) (rows [][]int) {
	for first := range n {
		row := make([]int, n)
		for i := range row {
			step := (i + 1) / 2 // 0, 1, -1, 2, -2, …
			if i%2 == 0 {
				step = n - i/2
			}
			row[i] = (first + step) % n
		}
		rows = append(rows, row)
		if n%2 == 1 && n > 1 {
			mirrored := slices.Clone(row)
			slices.Reverse(mirrored)
			rows = append(rows, mirrored)
		}
	}
	return rows
}
