package history

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/internal/booktest"
	"github.com/kuberewind/kuberewind/patch"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// owned returns a version with owners; the last one is the controller.
func (b *book) owned(it postgres.Item, owners ...string) postgres.Item {
	b.t.Helper()
	references := make([]string, len(owners))
	for i, uid := range owners {
		references[i] = fmt.Sprintf(`{"controller":%t,"uid":%q}`, i == len(owners)-1, uid)
	}
	o := *it.Object.(*booktest.Object)
	text := strings.Replace(string(o.Content), `"metadata":{`, `"metadata":{"ownerReferences":[`+strings.Join(references, ",")+`],`, 1)
	var err error
	o.Content, err = patch.Canonical([]byte(text))
	require.NoError(b.t, err)
	it.Object = &o
	return it
}

func ownersOf(t *testing.T, r *Record) map[string][]string {
	t.Helper()
	var lives []Life
	for l, err := range r.Lives(t.Context(), LifeQuery{}) {
		require.NoError(t, err)
		lives = append(lives, l)
	}
	found := map[string][]string{}
	for relation, err := range r.Kinship().Owners(t.Context(), lives) {
		require.NoError(t, err)
		found[relation.Name] = relation.Owners
	}
	return found
}

func TestOwnersReadsLivesUnlessTheyBeganBeforeTheRecord(t *testing.T) {
	b := newBook(t, 1)
	b.commit(b.owned(b.set(0, "a", "old", "1"), "first"), b.set(0, "a", "none", "1"))
	b.Now = b.Now.AddDate(0, 0, 1)
	b.commit(b.owned(b.set(0, "a", "old", "2"), "second"), b.owned(b.set(0, "a", "new", "1"), "one", "controller"))
	r := b.record(t)
	require.Equal(t, map[string][]string{"old": {"first"}, "new": {"controller", "one"}}, ownersOf(t, r))

	b.DB.Exec(t, `UPDATE kuberewind.lives SET owners = '{noted}' WHERE name = 'new'`)
	require.Equal(t, map[string][]string{"old": {"first"}, "new": {"noted"}}, ownersOf(t, r), "no version is read")
	for _, sql := range []string{`DROP TABLE kuberewind.deltas_p20260310`, `DELETE FROM kuberewind.days WHERE day = '2026-03-10'`} {
		b.DB.Exec(t, sql)
	}
	require.Equal(t, map[string][]string{"old": {"second"}, "new": {"noted"}}, ownersOf(t, r), "the first day was dropped")
}

func TestAdoptionsUsesItsIndex(t *testing.T) {
	b := newBook(t, 1)
	b.commit(b.set(0, "a", "adopted", "1"), b.set(0, "a", "other", "1"))
	for i := range 300 {
		b.commit(b.set(0, "a", "other", fmt.Sprint(i+2)))
	}
	b.commit(b.owned(b.set(0, "a", "adopted", "1"), "late"))
	b.DB.Exec(t, `ANALYZE`)
	conn := b.DB.Connect(t)
	rows, err := conn.Query(t.Context(), `EXPLAIN SELECT object_id FROM kuberewind.record_deltas WHERE cluster = 1 AND seq > 1 AND `+bringsOwners)
	require.NoError(t, err)
	plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	require.Contains(t, strings.Join(plan, " "), "_cluster_seq_idx1 on deltas_p20260310", "the partition's part of deltas_by_owners")

	var count int
	require.NoError(t, conn.QueryRow(t.Context(), `SELECT count(*) FROM kuberewind.record_deltas WHERE cluster = 1 AND `+bringsOwners).Scan(&count))
	require.Equal(t, 1, count)
}

func TestMayReferToExcludesUnrelatedLives(t *testing.T) {
	b := newBook(t, 2)
	b.commit(b.set(0, "a", "old", "1"), b.set(0, "a", "web", "1"))
	b.Now = b.Now.AddDate(0, 0, 1)
	uid := b.live(0, "a", "web").UID
	b.commit(b.set(0, "a", "stranger", "1"), b.owned(b.set(0, "a", "owned", "1"), uid, "other"), b.owned(b.set(0, "a", "others", "1"), "other"), b.owned(b.set(0, "b", "far", "1"), uid),
		b.set(1, "a", "web.18eb4c1b708dd77c", about(uid)), b.set(1, "a", "web-1.18eb4c1b708dd77c", about("x")), b.set(1, "a", "web.x.18eb4c1b708dd77c", about("x")),
		b.set(1, "a", "free", about(uid)), b.set(1, "a", "long.name-of-sixteen", about(uid)), b.set(1, "a", "web.gone", about(uid)))
	b.commit(b.remove(1, "a", "web.gone"))
	b.DB.Exec(t, `UPDATE kuberewind.streams SET api_group = '', resource = 'events' WHERE stream = (SELECT max(stream) FROM kuberewind.streams)`)
	r := b.record(t)
	refers := func(q LifeQuery) (names []string) {
		q.MayReferTo = &Life{Namespace: "a", Name: "web", UID: uid}
		for l, err := range r.Lives(t.Context(), q) {
			require.NoError(t, err)
			names = append(names, l.Name)
		}
		return names
	}
	events := []string{"web.18eb4c1b708dd77c", "web.x.18eb4c1b708dd77c", "free", "long.name-of-sixteen"}
	now := LifeQuery{Scope: Scope{Namespace: "a"}, LiveAt: 1000}
	require.Equal(t, append([]string{"owned"}, events...), refers(now))
	require.Equal(t, append([]string{"owned", "far"}, append(events, "web.gone")...), refers(LifeQuery{}))
	for _, sql := range []string{`DROP TABLE kuberewind.deltas_p20260310`, `DELETE FROM kuberewind.days WHERE day = '2026-03-10'`} {
		b.DB.Exec(t, sql)
	}
	require.Equal(t, append([]string{"old", "web", "owned"}, events...), refers(now), "the owners of the first two are no longer known")
}
