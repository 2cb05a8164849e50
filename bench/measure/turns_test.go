package measure

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWaysTakeTurns(t *testing.T) {
	var order []string
	e := Experiment{Name: "turns", Ways: []Way{fixed(&order, "a", 0, 1), fixed(&order, "b", 0, 2), fixed(&order, "c", 0, 3)}, WarmUp: true}
	result := do(t, e)
	require.Equal(t, "abc", strings.Join(order[:3], ""))
	for round, turn := range orders(3, 5) {
		for i, way := range turn {
			require.Equal(t, e.Ways[way].Name, order[3+3*round+i])
		}
	}
	require.Nil(t, result.Again)
	for i, m := range result.Ways {
		require.Equal(t, map[string][]float64{"speed": {float64(i + 1), float64(i + 1), float64(i + 1), float64(i + 1), float64(i + 1)}}, m.Values,
			"the warm-up does not count")
	}
	order, e.WarmUp, e.Ways[1].Once = nil, false, true
	e.Compare = []Comparison{{Quantity: "speed", Of: "a", To: "b"}, {Quantity: "speed", Of: "a", To: "c", AtMost: 1}}
	result = do(t, e)
	require.Len(t, order, 16, "where something has to hold, the first is its own rival")
	require.Equal(t, "b", order[3], "what is run once comes last in the first round")
	require.NotContains(t, order[4:], "b")
	require.Equal(t, [][]int{{0, 2, 3, 1}, {3, 2, 0}}, turns(append(e.Ways, e.Ways[0]), 2), "the others are as if it was not there")
	require.Len(t, result.Again.Values["speed"], 5)
	require.Len(t, result.Ways[1].Values["speed"], 1)
}

// spread is how much larger the largest is than the smallest.
func spread(counts []int) int { return slices.Max(counts) - slices.Min(counts) }

func TestEachWayFollowsEachOtherEquallyOften(t *testing.T) {
	for n := 2; n <= 9; n++ {
		design, apart := n, 1 // rounds of a whole design, and by how many successions pairs may differ meanwhile
		if n%2 == 1 {
			design, apart = 2*n, 2
		}
		all := orders(n, 5*design+1)
		first := make([]int, n)
		within, every := make([]int, n*n), make([]int, n*n)
		others := func(counts []int) (of []int) {
			for i, count := range counts {
				if i/n != i%n {
					of = append(of, count)
				}
			}
			return of
		}
		for round, order := range all {
			require.ElementsMatch(t, all[0], order)
			require.Equal(t, all[:round+1], orders(n, round+1), "it does not depend on how many rounds will follow")
			first[order[0]]++
			if round > 0 {
				every[all[round-1][n-1]*n+order[0]]++
			}
			for i := range order[1:] {
				within[order[i]*n+order[i+1]]++
				every[order[i]*n+order[i+1]]++
			}
			at := fmt.Sprintf("%d ways, %d rounds", n, round+1)
			require.LessOrEqual(t, spread(first), 1, at)
			require.LessOrEqual(t, spread(others(every)), 4, "%s, with the end of the round before", at)
			if (round+1)%design == 0 {
				require.Zero(t, spread(others(within)), at)
			} else {
				require.LessOrEqual(t, spread(others(within)), apart, at)
			}
		}
	}
	require.Equal(t, [][]int{{0}, {0}}, orders(1, 2))
	require.Equal(t, [][]int{nil, nil}, orders(0, 2))
	require.Empty(t, orders(3, 0))
}

func TestInFiveRoundsARivalIsBeforeOursAsOftenAsBeforeOursAgain(t *testing.T) {
	followed := make(map[[2]int]int)
	last := -1
	for _, order := range orders(3, 5) {
		for _, way := range order {
			followed[[2]int{last, way}]++
			last = way
		}
	}
	require.Equal(t, followed[[2]int{1, 0}], followed[[2]int{1, 2}])
}
