package migrations_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/sink/postgres"
	"github.com/kuberewind/kuberewind/verify"
)

// giveUp returns the SQL of docs/retention.md that deletes a cluster.
func giveUp(t *testing.T, cluster string) string {
	t.Helper()
	page, err := os.ReadFile("../docs/retention.md")
	require.NoError(t, err)
	found := regexp.MustCompile("(?s)```sql\n(DO .*?)\n```").FindAllSubmatch(page, -1)
	require.Len(t, found, 1)
	sql := string(found[0][1])
	require.Contains(t, sql, "'old-cluster'")
	return strings.ReplaceAll(sql, "'old-cluster'", "'"+cluster+"'")
}

func TestTheOwnerCanGiveUpAClusterThatKeepsTheDaysOfAnother(t *testing.T) {
	r, versions := threeDays(t, true)
	gone := another(t, r, "staging")
	st, err := gone.sink.Stream(t.Context(), postgres.StreamSpec{Resource: "configmaps", Kind: "ConfigMap", Version: "v1", Namespaced: true})
	require.NoError(t, err)
	gone.listed(st.ID())
	gone.commit(watched(st.ID(), delta.Added, gone.made("shop", "settings", "uid-9", `{"a":1}`)))
	gone.commit(postgres.Item{Stream: st.ID(), Kind: postgres.Marked, Marker: delta.Marker{Kind: delta.Interrupted, Cause: "expired"}})
	gone.sink.Close()
	run(t, r.admin, `INSERT INTO kuberewind.activity SELECT cluster, day, first_seq, last_seq, 'hour', 1, '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}' FROM kuberewind.days`)
	for _, name := range []string{"prod", "staging"} {
		run(t, r.admin, "INSERT INTO kuberewind.leaders VALUES ('uid-of-"+name+"', 'host', 'token', now() - interval '1 hour', '6s')")
		run(t, r.admin, "INSERT INTO kuberewind.standbys VALUES ('uid-of-"+name+"', 'host', now(), '6s')")
	}
	conn := pruner(t, r)
	require.Contains(t, refused(t, conn, "SELECT kuberewind.prune_day('2026-03-01', 'age')"), "the cluster staging keeps it: ")

	run(t, r.admin, giveUp(t, "staging"))
	require.Equal(t, []string{"prod"}, column[string](t, r.admin, "SELECT name FROM kuberewind.clusters"))
	for _, table := range column[string](t, r.admin, `
		SELECT t.oid::regclass::text || ' WHERE ' || a.attname || CASE a.attname WHEN 'cluster' THEN ' <> 1' ELSE ' <> ''uid-of-prod''' END
		FROM pg_class t JOIN pg_attribute a ON a.attrelid = t.oid
		WHERE t.relnamespace = 'kuberewind'::regnamespace AND t.relkind IN ('r', 'p') AND a.attname IN ('cluster', 'cluster_uid')`) {
		require.Zero(t, one[int](t, r.admin, "SELECT count(*)::int FROM "+table), table)
	}
	require.Equal(t, 7, one[int](t, r.admin, "SELECT count(*)::int FROM kuberewind.deltas"), "the other cluster keeps its deltas")

	require.Positive(t, one[int64](t, conn, "SELECT kuberewind.prune_day('2026-03-01', 'age')"))
	require.Positive(t, one[int64](t, conn, "SELECT kuberewind.prune_day('2026-03-02', 'age')"))
	require.Equal(t, string(versions[2].Content), r.object("web", "now"))
	report, err := verify.Chain(t.Context(), r.admin, "prod")
	require.NoError(t, err)
	require.Empty(t, report.Breaks)
	st2 := r.stream("apps", "deployments", "Deployment", true)
	r.commit(watched(st2, delta.Updated, r.made("shop", "new", "uid-3", `{"replicas":10}`)))
}

func TestAClusterThatIsRecordedOrUnknownIsNotGivenUp(t *testing.T) {
	r, _ := threeDays(t, true)
	r.now = time.Now()
	st := r.stream("apps", "deployments", "Deployment", true)
	r.commit(watched(st, delta.Updated, r.made("shop", "new", "uid-3", `{"replicas":10}`)))
	for name, why := range map[string]string{"prod": "a recorder still runs for the cluster prod", "other": "query returned no rows"} {
		_, err := r.admin.Exec(t.Context(), giveUp(t, name))
		var refusal *pgconn.PgError
		require.ErrorAs(t, err, &refusal)
		require.Equal(t, why, refusal.Message)
	}
	require.Equal(t, 8, one[int](t, r.admin, "SELECT count(*)::int FROM kuberewind.deltas"))
}

// A recorder that cannot reach its cluster commits nothing, but stays the leader.
func TestAClusterWithALeaderIsNotGivenUp(t *testing.T) {
	r, _ := threeDays(t, true)
	run(t, r.admin, "INSERT INTO kuberewind.leaders SELECT uid, 'host', 'token', now(), '6s' FROM kuberewind.clusters")
	_, err := r.admin.Exec(t.Context(), giveUp(t, "prod"))
	require.ErrorContains(t, err, "a recorder still runs for the cluster prod")
	run(t, r.admin, "UPDATE kuberewind.leaders SET renewed_at = now() - interval '1 hour'")
	run(t, r.admin, giveUp(t, "prod"))
}
