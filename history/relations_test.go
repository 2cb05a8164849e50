package history

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/internal/booktest"
)

// about returns the spec of an object that is about another one, as an Event is.
func about(uid string) string { return fmt.Sprintf(`1,"involvedObject":{"uid":%q}`, uid) }

func related(t *testing.T, r *Record, q LifeQuery) (names []string) {
	t.Helper()
	var lives []Life
	for l, err := range r.Lives(t.Context(), q) {
		require.NoError(t, err)
		lives = append(lives, l)
	}
	for found, err := range r.Kinship().Relations(t.Context(), lives) {
		require.NoError(t, err)
		names = append(names, found.Name+" about "+found.About)
	}
	slices.Sort(names)
	return names
}

func TestRelationsUsesTheFirstVersionOnRecord(t *testing.T) {
	b := newBook(t, 2)
	b.commit(b.set(0, "a", "old", about("first")), b.set(0, "a", "none", "1"), b.set(1, "b", "other", about("x")))
	b.Now = b.Now.AddDate(0, 0, 1)
	b.commit(b.set(0, "a", "old", about("second")), b.set(0, "a", "brief", about("x")))
	b.commit(b.remove(0, "a", "brief"))
	b.Now = b.Now.AddDate(0, 0, 1)
	b.commit(b.set(0, "a", "new", about("x")))
	r := b.record(t)
	require.Equal(t, []string{"brief about x", "new about x", "old about first"}, related(t, r, LifeQuery{Scope: Scope{Namespace: "a"}}))
	require.Equal(t, []string{"other about x"}, related(t, r, LifeQuery{Scope: Scope{Streams: []int32{b.Stream(things(1)).ID()}}}))
	require.Equal(t, []string{"new about x", "old about first"}, related(t, r, LifeQuery{Scope: Scope{Namespace: "a"}, BornBy: 7, EndedAfter: 6}), "brief had ended")
	require.Equal(t, []string{"brief about x", "old about first"}, related(t, r, LifeQuery{Scope: Scope{Namespace: "a"}, BornBy: 6}), "new had not begun")
	require.Empty(t, related(t, r, LifeQuery{Scope: Scope{Namespace: "nowhere"}}))

	db := b.DB.Connect(t)
	for _, sql := range []string{`DROP TABLE kuberewind.deltas_p20260310`, `DELETE FROM kuberewind.days WHERE day = '2026-03-10'`} {
		_, err := db.Exec(t.Context(), sql)
		require.NoError(t, err)
	}
	require.Equal(t, []string{"brief about x", "new about x", "old about second"}, related(t, r, LifeQuery{Scope: Scope{Namespace: "a"}}), "the first day was dropped")
}

func TestObjectIDsBoundTheVersionsToTheseLives(t *testing.T) {
	b := newBook(t, 2)
	b.scribble(rand.New(rand.NewPCG(3, 4)), 60)
	r := b.record(t)
	var ids []int64
	var want []string
	lives := map[int64]bool{}
	say := func(v *Version) string { return fmt.Sprint(v.Seq, v.Name, v.UID, string(v.Doc), string(v.Before)) }
	for v, err := range r.Versions(t.Context(), Query{}) {
		require.NoError(t, err)
		if v.Seq == v.ObjectID && v.Seq%3 == 0 {
			ids, lives[v.ObjectID] = append(ids, v.ObjectID), true
		}
		if lives[v.ObjectID] {
			want = append(want, say(&v))
		}
	}
	require.Greater(t, len(ids), 5)
	var got []string
	for v, err := range r.Versions(t.Context(), Query{ObjectIDs: ids}) {
		require.NoError(t, err)
		got = append(got, say(&v))
	}
	require.Equal(t, want, got)
	for v, err := range r.Versions(t.Context(), Query{ObjectIDs: []int64{}}) {
		require.NoError(t, err)
		require.Fail(t, "the query names no life", "seq %d", v.Seq)
	}
	after := booktest.Noon.Add(10 * time.Hour)
	for v, err := range r.Versions(t.Context(), Query{ObjectIDs: ids, From: after}) {
		require.NoError(t, err)
		require.False(t, v.ObservedAt.Before(after))
	}
}
