package migrations_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

func TestEveryTableViewColumnAndFunctionHasAComment(t *testing.T) {
	_, conn := migrated(t)
	run(t, conn, "SELECT kuberewind.ensure_day('2026-03-01')")
	require.Empty(t, column[string](t, conn, `
		SELECT c.oid::regclass || coalesce('.' || a.attname, '')
		FROM pg_class c
		LEFT JOIN LATERAL (SELECT attnum, attname FROM pg_attribute WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped UNION ALL SELECT 0, NULL) a ON true
		WHERE c.relnamespace = 'kuberewind'::regnamespace AND c.relkind IN ('r', 'p', 'v')
		  AND coalesce(CASE a.attnum WHEN 0 THEN obj_description(c.oid, 'pg_class') ELSE col_description(c.oid, a.attnum) END, '') = ''
		UNION ALL
		SELECT p.oid::regprocedure::text FROM pg_proc p
		WHERE p.pronamespace = 'kuberewind'::regnamespace AND coalesce(obj_description(p.oid, 'pg_proc'), '') = ''
		UNION ALL
		SELECT 'schema' WHERE obj_description('kuberewind'::regnamespace, 'pg_namespace') IS NULL`))
}

func TestTheDocsListTheCausesOfGaps(t *testing.T) {
	text, err := os.ReadFile("../docs/troubleshooting.md")
	require.NoError(t, err)
	_, table, ok := strings.Cut(string(text), "\n| cause | what it means | what to do |\n")
	require.True(t, ok)
	table, _, _ = strings.Cut(table, "\n\n")
	var causes []string
	for _, row := range strings.Split(table, "\n")[1:] {
		for _, cause := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(strings.Split(row, "|")[1], -1) {
			causes = append(causes, cause[1])
		}
	}
	require.Greater(t, len(causes), 5)
	_, conn := migrated(t)
	for _, view := range []string{"gaps_data", "record_gaps", "gaps"} {
		comment := one[string](t, conn, "SELECT col_description(attrelid, attnum) FROM pg_attribute WHERE attrelid = to_regclass('kuberewind.' || $1) AND attname = 'cause'", view)
		require.ElementsMatch(t, causes, strings.Split(strings.TrimSuffix(strings.TrimPrefix(comment, "Why: "), "."), ", "), view)
	}
}

// The public surface is versioned: columns are added at the end, and never moved or removed.
func TestViewsHaveTheirPublishedColumns(t *testing.T) {
	_, conn := migrated(t)
	for view, columns := range map[string]string{
		"deltas": "cluster seq observed_at occurred_at type source api_group version resource kind namespace name uid resource_version manager manager_evidence manager_hint patch object" +
			" subresource object_id digest exact",
		"changes": "cluster seq observed_at occurred_at type source api_group version resource kind namespace name uid resource_version manager manager_evidence manager_hint patch object" +
			" op path old new step subresource object_id moved_from",
		"objects":   "cluster api_group version resource kind namespace name uid first_seen last_seen first_type last_type resource_version deleted object_id last_seq",
		"gaps":      "cluster gap api_group resource scope cause detail from_at to_at from_rv to_rv open outcome appeared changed vanished unchanged opened_batch closed_batch",
		"pauses":    "cluster from_at to_at after_seq epoch recorder version",
		"recorders": "cluster recorder renewed_at term recording",
		"server":    "cluster path observed_at content digest",
		"coverage": "cluster api_group resource scope complete from_at to_at from_rv to_rv live cause detail" +
			" outcome appeared changed vanished unchanged gap",
		"snapshot": "api_group version resource kind namespace name uid resource_version object seq object_id observed_at occurred_at", // a type
	} {
		require.Equal(t, columns, one[string](t, conn, `SELECT string_agg(attname, ' ' ORDER BY attnum) FROM pg_attribute WHERE attrelid = to_regclass('kuberewind.' || $1) AND attnum > 0`, view), view)
	}
}

func TestDeltasAreDecoded(t *testing.T) {
	_, conn := migrated(t)
	fill(t, conn)
	require.Equal(t, []string{
		"prod 1 Sync list apps/v1 deployments Deployment default/web uid-1 1001 kubectl scale",
		"prod 2 Updated watch apps/v1 deployments Deployment default/web uid-1 1002 kubectl scale",
		"prod 3 Updated watch apps/v1 deployments Deployment default/web uid-1 1003 kubectl scale",
		"prod 4 Sync relist apps/v1 deployments Deployment default/web uid-1 1004 kubectl scale",
		"prod 5 Deleted watch apps/v1 deployments Deployment default/web uid-1 1005 kubectl scale",
		"prod 6 Added watch apps/v1 deployments Deployment default/web uid-6 1006 kubectl scale",
		"prod 7 Sync resync apps/v1 deployments Deployment default/web uid-6 1007 kubectl scale",
		"prod 8 Added watch /v1 nodes Node /node-a uid-8 1008 kubectl scale",
		"prod 9 Deleted inferred /v1 nodes Node /node-a uid-8 1009 kubectl scale",
	}, column[string](t, conn, `SELECT concat_ws(' ', cluster, seq, type, source, api_group || '/' || version, resource, kind, namespace || '/' || name, uid, resource_version, manager, subresource)
		FROM kuberewind.deltas ORDER BY seq`))
	require.Equal(t, 3, one[int](t, conn, "SELECT (object #> '{spec,replicas}')::int FROM kuberewind.deltas WHERE seq = 1"))
	require.Equal(t, day1, one[time.Time](t, conn, "SELECT observed_at FROM kuberewind.deltas WHERE seq = 2").UTC())
}

func TestAManagerIsShownWithItsEvidence(t *testing.T) {
	_, conn := migrated(t)
	fill(t, conn)
	for seq, evidence := range []string{"NULL", "1", "2", "3", "4"} {
		run(t, conn, fmt.Sprintf("UPDATE kuberewind.deltas_data SET manager_evidence = %s, manager_hint = 'helm-' || seq WHERE seq = %d", evidence, seq+1))
	}
	want := []string{"1 kubectl - helm-1", "2 kubectl entry helm-2", "3 kubectl owner helm-3", "4 kubectl none helm-4", "5 kubectl 4 helm-5"}
	const columns = "SELECT DISTINCT concat_ws(' ', seq, manager, coalesce(manager_evidence, '-'), manager_hint) AS line "
	require.Equal(t, want, column[string](t, conn, columns+"FROM kuberewind.deltas WHERE seq < 6 ORDER BY line"))
	run(t, conn, `UPDATE kuberewind.deltas_data SET patch = '[{"op":"remove","path":"/spec/replicas","old":5}]' WHERE seq = 3`) // each delta has a row in changes
	require.Equal(t, want, column[string](t, conn, columns+"FROM kuberewind.changes WHERE seq < 6 ORDER BY line"))
	run(t, conn, "SET client_min_messages = error")
	require.Equal(t, want[:2], column[string](t, conn, columns+"FROM kuberewind.history('prod', 'apps', 'deployments', 'default', 'web', 'seq:1', 'seq:2') ORDER BY line"))
}

func TestChangesHasOneRowForEachPath(t *testing.T) {
	_, conn := migrated(t)
	fill(t, conn)
	run(t, conn, `UPDATE kuberewind.deltas_data SET patch = '[{"from":"/spec/list/2","op":"move","path":"/spec/list/0"}]' WHERE seq = 3`)
	require.Equal(t, []string{
		`1.1 Sync add "" - {"spec": {"replicas": 3}}`,
		`2.1 Updated replace "/spec/replicas" 3 5`,
		`2.2 Updated add "/spec/paused" - null`,
		`3.1 Updated move "/spec/list/0" - - from "/spec/list/2"`,
		`4.1 Sync replace "" - {"spec": {"replicas": 7}}`,
		`5.1 Deleted remove "/spec/paused" null -`,
		`5.2 Deleted remove "" - -`,
		`6.1 Added add "" - {"spec": {}}`,
		`8.1 Added add "" - {}`,
		`9.1 Deleted remove "" - -`,
	}, column[string](t, conn, `SELECT concat_ws(' ', seq || '.' || step, type, op, '"' || path || '"', coalesce(old::text, '-'), coalesce(new::text, '-'), 'from "' || moved_from || '"')
		FROM kuberewind.changes ORDER BY seq, step`))
}

func TestObjectsHasOneRowForEachLife(t *testing.T) {
	_, conn := migrated(t)
	fill(t, conn)
	require.Equal(t, []string{
		"1 web uid-1 Sync Deleted 03-01 03-02 v1 1005 5 true",
		"6 web uid-6 Added Sync 03-02 03-03 v1 1007 7 false",
		"8 node-a uid-8 Added Deleted 03-03 03-03 v1 1009 9 true",
	}, column[string](t, conn, `SELECT concat_ws(' ', object_id, name, uid, first_type, last_type,
			to_char(first_seen AT TIME ZONE 'UTC', 'MM-DD'), to_char(last_seen AT TIME ZONE 'UTC', 'MM-DD'), version, resource_version, last_seq, CASE WHEN deleted THEN 'true' ELSE 'false' END)
		FROM kuberewind.objects ORDER BY object_id`))
}

func TestRecordersShowsTheRecorderOfEachCluster(t *testing.T) {
	_, conn := migrated(t)
	fill(t, conn)
	uid := one[string](t, conn, "SELECT uid FROM kuberewind.clusters")
	shown := func() []string {
		return column[string](t, conn, `SELECT concat_ws(' ', cluster, recorder, CASE WHEN renewed_at IS NULL THEN 'ended' END, term, CASE WHEN recording THEN 'records' END) FROM kuberewind.recorders`)
	}
	run(t, conn, "INSERT INTO kuberewind.leaders VALUES ($1, '', '', '-infinity', '0'), ('no record of it yet', 'host-2/7', 'token', now(), '1 hour')", uid)
	require.Empty(t, shown(), "no leader was chosen yet")
	for renewed, want := range map[string]string{
		"clock_timestamp()":                         "prod host-1/7 01:00:00 records",
		"clock_timestamp() - interval '50 minutes'": "prod host-1/7 01:00:00 records",
		"clock_timestamp() - interval '2 hours'":    "prod host-1/7 01:00:00",
		"clock_timestamp() + interval '2 hours'":    "prod host-1/7 01:00:00",
		"'-infinity'":                               "prod host-1/7 ended 01:00:00",
	} {
		run(t, conn, "UPDATE kuberewind.leaders SET holder = 'host-1/7', token = 'secret', term = '1 hour', renewed_at = "+renewed+" WHERE cluster_uid = $1", uid)
		require.Equal(t, []string{want}, shown(), renewed)
	}
}

func TestGapsPausesAndServerAreShownByName(t *testing.T) {
	_, conn := migrated(t)
	fill(t, conn)
	run(t, conn, `INSERT INTO kuberewind.gaps_data (cluster, gap, stream, cause, detail, from_rv, from_at, opened_batch) VALUES (1, 1, 2, 'forbidden', 'nodes is forbidden', '7', $1, 2)`, day1)
	run(t, conn, `INSERT INTO kuberewind.gaps_data VALUES (1, 2, 1, 'first_list', '', NULL, NULL, 1, '9', $1, 1, 'relisted', 3, 0, 0, 0)`, day1)
	run(t, conn, `INSERT INTO kuberewind.pauses_data VALUES (1, 2, $1, $2, 5)`, day1, day2)
	run(t, conn, `INSERT INTO kuberewind.documents VALUES (1, '\x01', '{"minor": "37"}')`)
	run(t, conn, `INSERT INTO kuberewind.server_data VALUES (1, '/version', $1, '\x01'), (1, '/openapi/v3/apis/gone', $1, NULL)`, day1)

	require.Equal(t, []string{"prod 1 nodes forbidden open", "prod 2 deployments first_list relisted 3"},
		column[string](t, conn, "SELECT concat_ws(' ', cluster, gap, resource, cause, CASE WHEN open THEN 'open' END, outcome, appeared) FROM kuberewind.gaps ORDER BY gap"))
	require.Equal(t, "prod 1 day 5 host-2 v0.2",
		one[string](t, conn, "SELECT concat_ws(' ', cluster, to_at - from_at, after_seq, recorder, version) FROM kuberewind.pauses"))
	require.Equal(t, []string{"prod /openapi/v3/apis/gone", `prod /version {"minor": "37"}`},
		column[string](t, conn, "SELECT concat_ws(' ', cluster, path, content) FROM kuberewind.server ORDER BY path"))
}

func TestQueriesOfViewsReadOnlyThePartitionsTheyNeed(t *testing.T) {
	_, conn := migrated(t)
	fill(t, conn)
	const day = "observed_at >= '2026-03-02T00:00:00Z' AND observed_at < '2026-03-03T00:00:00Z'"
	for _, query := range []string{
		"SELECT * FROM kuberewind.deltas WHERE " + day,
		"SELECT * FROM kuberewind.deltas WHERE namespace = 'default' AND name = 'web' AND " + day,
		"SELECT * FROM kuberewind.changes WHERE path LIKE '/spec/%' AND " + day,
	} {
		require.Equal(t, []string{"deltas_p20260302"}, partitionsIn(plan(t, conn, query)), query)
	}
}

func TestQueriesOfViewsStartFromTheName(t *testing.T) {
	_, conn := migrated(t)
	fill(t, conn)
	run(t, conn, `INSERT INTO kuberewind.lives SELECT 1, 1000 + n, 1, 'ns-' || n % 10, 'name-' || n, 'uid-' || n FROM generate_series(1, 20000) n`)
	run(t, conn, "ANALYZE kuberewind.lives")
	for _, view := range []string{"deltas", "changes", "objects"} {
		require.Contains(t, plan(t, conn, "SELECT * FROM kuberewind."+view+" WHERE namespace = 'ns-7' AND name = 'name-7'"), "lives_by_name", view)
		require.Contains(t, plan(t, conn, "SELECT * FROM kuberewind."+view+" WHERE uid = 'uid-7'"), "lives_by_uid", view)
	}
}

func TestTheViewObjectsReadsOnlyTheDaysItNeeds(t *testing.T) {
	_, conn := migrated(t)
	fill(t, conn)
	require.NotContains(t, plan(t, conn, "SELECT kind, count(*) FROM kuberewind.objects GROUP BY kind"), "deltas_p", "columns that a query does not use are not looked up")

	run(t, conn, "SET enable_seqscan = off") // otherwise the server reads small tables completely
	ran := plan(t, conn, "SELECT * FROM kuberewind.objects WHERE uid = 'uid-8'", "ANALYZE")
	for _, line := range strings.Split(ran, "\n") {
		if strings.Contains(line, "deltas_p20260301") || strings.Contains(line, "deltas_p20260302") {
			require.Contains(t, line, "never executed")
		}
	}
	require.Contains(t, ran, "deltas_p20260303")
}

func plan(t *testing.T, conn *pgx.Conn, query string, options ...string) string {
	t.Helper()
	options = append(options, "COSTS OFF")
	return strings.Join(column[string](t, conn, "EXPLAIN ("+strings.Join(options, ", ")+") "+query), "\n")
}

// partitionsIn returns the partitions that a plan scans.
func partitionsIn(plan string) []string {
	seen := map[string]bool{}
	var names []string
	for _, word := range strings.Fields(plan) {
		if strings.HasPrefix(word, "deltas_p") && len(word) == len("deltas_p20260302") && !seen[word] {
			seen[word] = true
			names = append(names, word)
		}
	}
	return names
}
