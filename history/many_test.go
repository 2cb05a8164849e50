package history

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// A query plans and reads only the day that it needs. Its time must not grow with the record.
func TestQueriesReadOneDayOfMany(t *testing.T) {
	b := newBook(t, 1)
	for i := range 60 {
		b.commit(b.set(0, "a", "x", strconv.Itoa(i)))
		b.Now = b.Now.AddDate(0, 0, 1)
	}
	r := b.record(t)
	g, err := newDeltaReader(t.Context(), r.view, Query{Scope: Scope{Name: "x"}})
	require.NoError(t, err)
	all, err := r.view.daysFrom(t.Context(), 1, 60)
	require.NoError(t, err)
	require.Len(t, all, 60)
	d := all[30]
	sql, args := g.query(0, 60, d.FirstAt, d.LastAt)
	for range 10 { // by then, the automatic plan cache mode would use a generic plan
		rows, err := r.Pool().Query(t.Context(), "EXPLAIN "+sql, args...)
		require.NoError(t, err)
		plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(t, err)
		text := strings.Join(plan, "\n")
		require.Contains(t, text, "deltas_p"+d.Day.Format("20060102"))
		require.Equal(t, 1, strings.Count(text, " on deltas_p"), text)
	}
	begun := time.Now()
	p := resolved(t, r, At(d.FirstAt), Scope{})
	got, _ := rebuilt(t, r, p, Scope{Name: "x"}, RebuildOptions{})
	require.Contains(t, got["1 a/x"], `"spec":30`)
	t.Logf("resolved and rebuilt one object in %s", time.Since(begun))
}

// An index finds the lives of a namespace or name, and their ends one by one. The size of the rest of the record must not
// matter.
func TestSomeLivesAreFoundWithoutReadingAllEnds(t *testing.T) {
	b := newBook(t, 1)
	b.commit(b.set(0, "a", "x", "1"))
	db := b.DB.Connect(t)
	for _, sql := range []string{
		`INSERT INTO kuberewind.lives SELECT 1, 1000 + n, 1, 'ns-' || n % 40, 'name-' || n, 'uid-' || n FROM generate_series(1, 20000) n`,
		`INSERT INTO kuberewind.ends SELECT 1, 1000 + n, 1000 + n FROM generate_series(1, 20000) n`,
		`ANALYZE kuberewind.lives, kuberewind.ends`,
	} {
		_, err := db.Exec(t.Context(), sql)
		require.NoError(t, err)
	}
	r := b.record(t)
	set, err := r.view.readStreams(t.Context())
	require.NoError(t, err)
	for _, scope := range []Scope{{Namespace: "ns-7"}, {Namespace: "ns-7", Name: "name-7"}} {
		q := LifeQuery{Scope: scope, BornBy: 30_000, EndedAfter: 5}
		sql, args := q.statement(r.Cluster().Number, 0, set)
		rows, err := r.Pool().Query(t.Context(), "EXPLAIN "+sql, args...)
		require.NoError(t, err)
		plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(t, err)
		text := strings.Join(plan, "\n")
		require.Contains(t, text, "lives_by_name", scope)
		require.Contains(t, text, "ends_pkey", scope)
		require.NotContains(t, text, "Seq Scan on ends", scope)
	}
}
