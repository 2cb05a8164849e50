package history

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMomentsAreThoseOfTheDeltas reads over the end of a day, and of the record.
func TestMomentsAreThoseOfTheDeltas(t *testing.T) {
	r := days(t).record(t)
	var expected, found []Moment
	for d, err := range r.Deltas(t.Context(), Query{}) {
		require.NoError(t, err)
		expected = append(expected, Moment{Seq: d.Seq, At: d.ObservedAt})
	}
	for after := int64(0); ; after = found[len(found)-1].Seq {
		next, err := r.Moments(t.Context(), after, 2)
		require.NoError(t, err)
		require.LessOrEqual(t, len(next), 2)
		if len(next) == 0 {
			break
		}
		found = append(found, next...)
	}
	require.Equal(t, expected, found)
}
