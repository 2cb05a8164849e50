package postgres

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/delta"
)

func TestRevisionsOmitsVersionsFromBeforeARollback(t *testing.T) {
	r := record(t, newDatabase(t))
	pods := r.pods()
	r.commit(watched(pods, delta.Added, made(t, "ns", "old", "1", "5", "{}")))
	r.now = noon.Add(2 * recentFor)
	r.commit(watched(pods, delta.Added, made(t, "ns", "x", "2", "7", "{}")))
	newest := func() []string {
		r.reopen()
		pods = r.pods()
		found, err := r.sink.Prior().Revisions(t.Context())
		require.NoError(t, err)
		return found[pods.ID()]
	}
	require.Equal(t, []string{"7"}, newest(), "5 was long ago")

	r.commit(interruptedBy(pods, delta.CauseHistoryReversed, "etcd was restored"))
	require.Empty(t, newest(), "7 may be another's now")
	r.commit(replacedBy(pods, delta.CauseHistoryReversed, "6"), watched(pods, delta.Added, made(t, "ns", "y", "3", "8", "{}")))
	require.Equal(t, []string{"8"}, newest())
}

func TestSomeOfTheLastVersionsAreCheckedAgain(t *testing.T) {
	r := record(t, newDatabase(t))
	pods := r.pods()
	r.commit(replacedBy(pods, delta.CauseFirstList, "4"), watched(pods, delta.Added, made(t, "ns", "old", "1", "5", "{}")))
	r.now = noon.Add(time.Minute)
	verified := r.encode(watched(pods, delta.Added, made(t, "ns", "older", "2", "6", "{}")))
	verified.SetVerified(r.now.Add(time.Second))
	require.NoError(t, r.sink.Commit(t.Context(), verified))
	r.now = r.now.Add(time.Minute)
	var items []Item
	const many = 10*unproven + 5
	for i := range many {
		items = append(items, watched(pods, delta.Added, made(t, "ns", fmt.Sprint("x", i), fmt.Sprint("u", i), fmt.Sprint(100+i), "{}")))
	}
	r.commit(append(items, watched(pods, delta.Deleted, made(t, "ns", "x0", "u0", "900", "{}")))...)
	earlier := r.encode(watched(pods, delta.Added, made(t, "ns", "last", "l", "901", "{}")))
	earlier.SetVerified(noon) // the record keeps the latest time
	require.NoError(t, r.sink.Commit(t.Context(), earlier))
	look := func() []Version {
		r.reopen()
		pods = r.pods()
		found, err := r.sink.Prior().Unverified(t.Context())
		require.NoError(t, err)
		return found[pods.ID()]
	}
	found := look()
	require.LessOrEqual(t, len(found), unproven+1)
	require.Greater(t, len(found), unproven*3/4)
	require.Equal(t, r.now, found[0].Observed.UTC())
	require.Equal(t, []string{"ns", "x0", "u0", "100"}, []string{found[0].Namespace, found[0].Name, found[0].UID, found[0].ResourceVersion})
	require.Equal(t, "last", found[len(found)-1].Name, "the newest among them")

	r.commit(interruptedBy(pods, delta.CauseHistoryReversed, "etcd was restored"))
	require.Empty(t, look(), "the rollback has replaced its history")

	r.commit(replacedBy(pods, delta.CauseHistoryReversed, "200"))
	r.commit(watched(pods, delta.Added, made(t, "ns", "new", "n", "201", "{}")))
	require.Len(t, look(), 1, "it is of the new history")
	_, err := r.db.admin.Exec(t.Context(), `DELETE FROM kuberewind.batches WHERE batch IN (SELECT closed_batch FROM kuberewind.gaps_data)`)
	require.NoError(t, err)
	require.NotEmpty(t, look(), "the day on which the gap was closed was dropped")
}

// A day of a busy cluster has millions of rows. No index orders rows by the time of observation.
func TestTheLastVersionsAreFoundByAnIndex(t *testing.T) {
	db := newDatabase(t)
	r := record(t, db)
	r.commit(watched(r.pods(), delta.Added, made(t, "ns", "x", "1", "5", "{}")))
	tx, err := db.admin.Begin(t.Context())
	require.NoError(t, err)
	defer func() { require.NoError(t, tx.Rollback(t.Context())) }()
	_, err = tx.Exec(t.Context(), "SET LOCAL enable_seqscan = off") // because there are few rows
	require.NoError(t, err)
	rows, err := tx.Query(t.Context(), "EXPLAIN "+findUnverified, r.sink.Prior().unverifiedArgs()...)
	require.NoError(t, err)
	plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	require.Regexp(t, `on deltas_p\S+ d_\d+ .*\n.*Index Cond: .*seq >`, strings.Join(plan, "\n"))
}

// A role may have such a long name. The recorder must not request the cut name from the server.
func TestTheLastVersionsAreNotLookedUpByACutName(t *testing.T) {
	r := record(t, newDatabase(t))
	r.commit(watched(r.pods(), delta.Added, made(t, "ns", strings.Repeat("x", 2*maxName), "1", "5", "{}")))
	r.reopen()
	r.pods()
	found, err := r.sink.Prior().Unverified(t.Context())
	require.NoError(t, err)
	require.Empty(t, found)
}
