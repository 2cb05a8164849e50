package history

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestMomentsListsDeltasAndEndsOfGaps reads across the end of a day, up to the end of the record. The ends of gaps come
// between the deltas.
func TestMomentsListsDeltasAndEndsOfGaps(t *testing.T) {
	r := days(t).record(t)
	var expected, found []Moment
	for d, err := range r.Deltas(t.Context(), Query{}) {
		require.NoError(t, err)
		expected = append(expected, Moment{Seq: d.Seq, At: d.ObservedAt})
	}
	var ends []Moment
	for after := (Moment{}); ; {
		next, err := r.Timeline().Moments(t.Context(), after, 2)
		require.NoError(t, err)
		if len(next) == 0 {
			break
		}
		deltas := 0
		for _, m := range next {
			require.GreaterOrEqual(t, m.Seq, after.Seq)
			require.False(t, m.At.Before(after.At))
			if after = m; m.Batch > 0 {
				ends = append(ends, m)
				continue
			}
			found = append(found, m)
			deltas++
		}
		require.LessOrEqual(t, deltas, 2)
	}
	require.NotEmpty(t, ends, "empty first lists end gaps")
	for i, end := range ends {
		require.True(t, i == 0 || end.Batch > ends[i-1].Batch, "each comes once, in order")
		batch, err := r.Timeline().EndedBy(t.Context(), end.Seq, end.At)
		require.NoError(t, err)
		require.GreaterOrEqual(t, batch, end.Batch)
		batch, err = r.Timeline().EndedBy(t.Context(), end.Seq, end.At.Add(-time.Microsecond))
		require.NoError(t, err)
		require.Less(t, batch, end.Batch)
	}
	require.Equal(t, expected, found)
}
