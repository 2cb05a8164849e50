package measure

import (
	"cmp"
	"slices"
)

// turns gives, for each round, which ways are run in it, by their places, and in what order. Those that are run once come last in the first round. All others
// take turns so that what one leaves behind (pages to write, a heap, a warm cache) falls on all alike: see [orders].
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

// orders gives the order of n ways in each round: the rows of a Williams design, all of them before one comes again. After any number of rounds one way has begun
// at most one round more than another; and one pair has followed each other within rounds at most once more than another pair if n is even, twice if it is odd
// (three rounds of three ways cannot do better), and equally often after whole designs. What a round begins with follows what the one before
// ended with: of the rows that are left, one that keeps this even too is the next. The orders of the first rounds do not depend on how many there will be, so that
// an experiment that goes on later goes on with the same.
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

// next takes a row that begins with what has begun the fewest rounds, and of these one whose successions there were the fewest of.
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

// successions are those that a row brings, by their places in followed, with that from the row before.
func (d *design) successions(row []int) (all []int) {
	if len(d.last) > 0 {
		all = append(all, d.last[d.n-1]*d.n+row[0])
	}
	for i := range row[1:] {
		all = append(all, row[i]*d.n+row[i+1])
	}
	return all
}

// williams gives the rows of a design for n ways that is balanced for what each leaves to the next: each way is in each place equally often, and comes directly
// after each other one equally often, once in n rows if n is even. If it is odd the square has only half of the successions, and its mirror images, which come
// between its rows, the other half: twice in 2n rows. (E. J. Williams, Experimental designs balanced for the estimation of residual effects of
// treatments, 1949.)
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
