package paging

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAListWithNewTokensContinues(t *testing.T) {
	var g Guard
	for page := range 1000 {
		require.NoError(t, g.Next(strconv.Itoa(page)))
	}
}

func TestARepeatedTokenEndsTheList(t *testing.T) {
	for cycle := 1; cycle <= 3; cycle++ {
		var g Guard
		for page := range cycle {
			require.NoError(t, g.Next(strconv.Itoa(page)))
		}
		require.EqualError(t, g.Next("0"), "the server repeated a continue token after "+strconv.Itoa(cycle)+" pages: the list would never end")
	}
}

func TestAListWithTooManyPagesEnds(t *testing.T) {
	var g Guard
	for page := range MaxPages {
		require.NoError(t, g.Next(strconv.Itoa(page)))
	}
	require.EqualError(t, g.Next("one more"), "the server continues the list after 100000 pages, which is more than a list can have")
}
