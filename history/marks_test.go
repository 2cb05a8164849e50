package history

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/internal/booktest"
)

// newBookWithALostDay returns a record of three days: x is written on each, y on the first, z on the last. The partition of
// the second day, with seq 3 and 4, is gone.
func newBookWithALostDay(t *testing.T) (b *book, lost time.Time) {
	b = newBook(t, 1)
	b.commit(b.set(0, "a", "x", `1`), b.set(0, "a", "y", `1`)) // 1, 2
	b.Now = booktest.Noon.AddDate(0, 0, 1)
	b.commit(b.set(0, "a", "x", `2`)) // 3
	b.Now = b.Now.Add(time.Hour)
	b.commit(b.set(0, "a", "x", `3`)) // 4
	b.Now = booktest.Noon.AddDate(0, 0, 2)
	b.commit(b.set(0, "a", "z", `1`)) // 5
	b.DB.Exec(t, `ALTER TABLE kuberewind.deltas_data DETACH PARTITION kuberewind.deltas_p20260311`)
	return b, booktest.Noon.AddDate(0, 0, 1)
}

func TestMarksOfSeqsIgnoreAMissingDayWithoutThem(t *testing.T) {
	b, _ := newBookWithALostDay(t)
	r := b.record(t)
	found, err := r.Timeline().Marks(t.Context(), MarkQuery{Seqs: []int64{1, 5}, FromSeq: 1, ToSeq: 5})
	require.NoError(t, err)
	require.Len(t, found, 2)
	_, err = r.Timeline().Marks(t.Context(), MarkQuery{Seqs: []int64{1, 4}, FromSeq: 1, ToSeq: 5})
	var missing *MissingDayError
	require.ErrorAs(t, err, &missing)
}

func TestAWindowThatEndsOnAMissingDayIncludesTheDay(t *testing.T) {
	b, lost := newBookWithALostDay(t)
	r := b.record(t)
	first, last, err := r.Timeline().Between(t.Context(), lost.Add(time.Minute), lost.AddDate(0, 0, 2))
	require.NoError(t, err)
	require.Equal(t, []int64{3, 5}, []int64{first, last})
	first, last, err = r.Timeline().Between(t.Context(), booktest.Noon.Add(-time.Hour), lost.Add(time.Minute))
	require.NoError(t, err)
	require.Equal(t, []int64{1, 4}, []int64{first, last})
	end, err := r.Timeline().LastBefore(t.Context(), lost.Add(time.Minute))
	require.NoError(t, err)
	require.Equal(t, int64(4), end)
	end, err = r.Timeline().LastBefore(t.Context(), booktest.Noon)
	require.NoError(t, err)
	require.Zero(t, end, "before excludes the time itself")
}

func TestAPointHoldsRecoveredDeltasByTheirTime(t *testing.T) {
	b := newBook(t, 1)
	b.commit(b.set(0, "a", "x", `1`))
	stopped := b.Now
	b.Pause(time.Hour)
	early, late := b.set(0, "a", "x", `2`), b.set(0, "a", "x", `3`)
	early.Occurred, late.Occurred = stopped.Add(10*time.Minute), stopped.Add(30*time.Minute)
	b.commit(early, late)
	r := b.record(t)
	p := resolved(t, r, At(stopped.Add(20*time.Minute)), Scope{})
	var held []int64
	for v, err := range r.Versions(t.Context(), Query{ToSeq: max(p.Seq, p.Until)}) {
		require.NoError(t, err)
		if p.Holds(&v.Delta) {
			held = append(held, v.Seq)
		}
	}
	require.Equal(t, []int64{1, 2}, held)
}
