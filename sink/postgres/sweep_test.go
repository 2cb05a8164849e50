package postgres

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/delta"
)

// keyframe returns a Sync item of a known object.
func keyframe(t *testing.T, st *Stream, key string) Item {
	known, ok, err := st.Known().GetByKey(key)
	require.NoError(t, err)
	require.True(t, ok)
	object := known.(KnownObject)
	return Item{Stream: st.ID(), Kind: Delta, Type: delta.Sync, Source: delta.SourceResync, Object: object, Version: object.Version()}
}

func (r *recording) sweeps() []string {
	return all[string](r.t, r.db, `SELECT concat_ws(' ', day, batch, seq, objects) FROM kuberewind.sweeps WHERE cluster = $1 ORDER BY day`, r.cluster())
}

func TestASweepIsCompleteWhenEveryLivingObjectHasARowInTheDay(t *testing.T) {
	r := record(t, newDatabase(t))
	pods := r.pods()
	x, y := made(t, "a", "x", newUID(), "11", `1`), made(t, "a", "y", newUID(), "12", `1`)
	r.commit(replacedBy(pods, delta.CauseFirstList, "10"))
	r.commit(watched(pods, delta.Added, x), watched(pods, delta.Added, y))
	r.now = r.now.AddDate(0, 0, 1)
	r.commit(watched(pods, delta.Updated, made(t, "a", "y", string(y.uid), "13", `2`)))
	require.Equal(t, Progress{Waiting: 1}, r.sink.Unswept(r.now))
	r.sink.CompleteSweep(r.now)
	r.commit(bookmark(pods, "14"))
	require.Empty(t, r.sweeps(), "x has no row in the day")
	require.False(t, r.sink.Swept(r.now))

	r.sink.CompleteSweep(r.now)
	stale := keyframe(t, pods, "a/x")
	r.commit(stale, keyframe(t, pods, "a/y"), stale)
	require.Equal(t, []string{"2026-03-11 5 4 2"}, r.sweeps())
	require.True(t, r.sink.Swept(r.now))
	h := r.history()
	require.Len(t, h, 4, "one keyframe a day, and none for an object that changed in it")
	require.Equal(t, []any{int16(delta.NumberSync), int16(delta.NumberResync), true, "11"}, []any{h[3].Type, h[3].Source, h[3].HasObj, h[3].RV})
	require.Equal(t, "v1", one[string](t, r.db, `SELECT version FROM kuberewind.deltas_data WHERE seq = 4`))
	require.Nil(t, one[*string](t, r.db, `SELECT manager FROM kuberewind.deltas_data WHERE seq = 4`), "the keyframe names no manager")
	r.verify()

	r.reopen()
	require.True(t, r.sink.Swept(r.now))
	require.False(t, r.sink.Swept(r.now.AddDate(0, 0, 1)))
}

func TestAKeyframeOfAnOutdatedVersionIsSkipped(t *testing.T) {
	r := record(t, newDatabase(t))
	pods := r.pods()
	x := made(t, "a", "x", newUID(), "11", `1`)
	r.commit(watched(pods, delta.Added, x))
	old := keyframe(t, pods, "a/x")
	r.commit(watched(pods, delta.Updated, made(t, "a", "x", string(x.uid), "12", `2`)))
	r.now = r.now.AddDate(0, 0, 1)
	r.commit(old)
	r.commit(watched(pods, delta.Deleted, made(t, "a", "x", string(x.uid), "13", `2`)), old)
	require.Len(t, r.history(), 3)
}

func TestAnInferredDeleteIsNeverTheOnlyRowOfALifeInADay(t *testing.T) {
	r := record(t, newDatabase(t))
	pods := r.pods()
	x, y := made(t, "a", "x", newUID(), "11", `1`), made(t, "a", "y", newUID(), "12", `1`)
	r.commit(replacedBy(pods, delta.CauseFirstList, "10"))
	r.commit(watched(pods, delta.Added, x), watched(pods, delta.Added, y))
	r.now = r.now.AddDate(0, 0, 1)
	again := made(t, "a", "y", newUID(), "21", `1`)
	r.commit(gone(pods, x, "20"), watched(pods, delta.Added, again), replacedBy(pods, "expired", "22"))
	require.Equal(t, []string{"3 Sync resync t", "4 Deleted inferred f", "5 Sync resync t", "6 Deleted inferred f", "7 Added watch t"},
		all[string](t, r.db, `SELECT concat_ws(' ', seq, type, source, object IS NOT NULL) FROM kuberewind.deltas WHERE seq > 2 ORDER BY seq`))
	r.history()
	r.verify()
}

func TestStreamsThatAreNotFollowedAreSwept(t *testing.T) {
	r := record(t, newDatabase(t))
	pods := r.pods()
	r.commit(watched(pods, delta.Added, made(t, "a", "x", newUID(), "11", `1`)))
	r.reopen()
	r.now = r.now.Add(24 * time.Hour)
	require.Equal(t, Progress{}, r.sink.Unswept(r.now))
	dormant, err := r.sink.Dormant(t.Context())
	require.NoError(t, err)
	require.Len(t, dormant, 1)
	opened, err := r.sink.Stream(t.Context(), dormant[0])
	require.NoError(t, err)
	require.Equal(t, Progress{Waiting: 1}, r.sink.Unswept(r.now))
	r.sink.CompleteSweep(r.now)
	r.commit(keyframe(t, opened, "a/x"))
	require.Len(t, r.sweeps(), 1)
	dormant, err = r.sink.Dormant(t.Context())
	require.NoError(t, err)
	require.Empty(t, dormant)
}
