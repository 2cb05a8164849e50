package delta

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestTheOrderOfResourceVersions(t *testing.T) {
	for _, test := range []struct {
		a, b             string
		order            int
		known            bool
		precedes, passes bool
		later            string
	}{
		{a: "9", b: "10", order: -1, known: true, precedes: true, later: "10"},
		{a: "10", b: "9", order: 1, known: true, passes: true, later: "10"},
		{a: "10", b: "10", known: true, later: "10"},
		{a: "18446744073709551616", b: "9", order: 1, known: true, passes: true, later: "18446744073709551616"},
		{a: "abc", b: "abc", later: "abc"},
		{a: "abc", b: "abd", passes: true, later: "abd"},
		{a: "10", b: "abc", passes: true, later: "abc"},
		{a: "abc", b: "10", passes: true, later: "10"},
		{a: "", b: "10", passes: true, later: "10"},
		{a: "10", b: "", passes: true, later: "10"},
		{a: "0", b: "10", passes: true, later: "10"},
		{a: "010", b: "10", passes: true, later: "10"},
		{a: "", b: "", later: ""},
	} {
		order, known := Compare(test.a, test.b)
		require.Equal(t, test.order, order, "%+v", test)
		require.Equal(t, test.known, known, "%+v", test)
		require.Equal(t, test.precedes, Precedes(test.a, test.b), "%+v", test)
		require.Equal(t, test.passes, Passes(test.a, test.b), "%+v", test)
		require.Equal(t, test.later, Later(test.a, test.b), "%+v", test)
		require.Equal(t, test.known, Ordered(test.a) && Ordered(test.b), "%+v", test)
	}
}

func TestOrderedVersionsHaveATotalOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		version := rapid.StringMatching(`[1-9][0-9]{0,24}`)
		a, b, c := version.Draw(t, "a"), version.Draw(t, "b"), version.Draw(t, "c")
		there, _ := Compare(a, b)
		back, _ := Compare(b, a)
		require.Equal(t, there, -back, "the order is antisymmetric")
		require.Equal(t, there == 0, a == b)
		if Precedes(a, b) && Precedes(b, c) {
			require.True(t, Precedes(a, c), "of three, the first precedes the last")
		}
		require.Equal(t, Passes(b, a), Precedes(a, b))
		require.Equal(t, Later(a, b), Later(b, a))
		require.Equal(t, Later(Later(a, b), c), Later(a, Later(b, c)))
	})
}
