package migrations_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/internal/booktest"
	"github.com/kuberewind/kuberewind/migrations"
	"github.com/kuberewind/kuberewind/sink/postgres"
	"github.com/kuberewind/kuberewind/verify"
)

// known returns a keyframe of an object as it is on record.
func known(t *testing.T, sink *postgres.Sink, st *postgres.Stream, key string) postgres.Item {
	t.Helper()
	value, ok, err := st.Known().GetByKey(key)
	require.NoError(t, err)
	require.True(t, ok)
	return postgres.Item{Stream: st.ID(), Kind: postgres.Delta, Type: delta.Sync, Source: delta.SourceResync, Object: value.(postgres.KnownObject)}
}

// threeDays makes a record of three days. The object shop/web changes on the first; shop/old is created on it and
// deleted on the second. The second day is not swept. If swept is true, the third is.
func threeDays(t *testing.T, swept bool) (r *recording, versions []*booktest.Object) {
	r = record(t)
	st, err := r.sink.Stream(t.Context(), postgres.StreamSpec{Group: "apps", Resource: "deployments", Kind: "Deployment", Version: "v1", Namespaced: true})
	require.NoError(t, err)
	r.listed(st.ID())
	made := func(name, uid, spec string) *booktest.Object {
		v := r.made("shop", name, uid, spec)
		versions = append(versions, v)
		return v
	}
	r.commit(watched(st.ID(), delta.Added, made("web", "uid-1", `{"replicas":1}`)), watched(st.ID(), delta.Added, made("old", "uid-2", `{}`)))
	r.commit(watched(st.ID(), delta.Updated, made("web", "uid-1", `{"replicas":2}`)))
	r.now = r.now.AddDate(0, 0, 1)
	r.commit(watched(st.ID(), delta.Deleted, made("old", "uid-2", `{}`)))
	r.now = r.now.AddDate(0, 0, 1)
	r.commit(watched(st.ID(), delta.Added, made("new", "uid-3", `{}`)))
	if swept {
		r.now = r.now.Add(time.Hour)
		r.sink.CompleteSweep(r.now)
		r.commit(known(t, r.sink, st, "shop/web"))
		require.True(t, r.sink.Swept(r.now))
	}
	r.now = r.now.Add(time.Hour)
	r.commit(watched(st.ID(), delta.Updated, made("new", "uid-3", `{"replicas":9}`)))
	return r, versions
}

// pruner returns a connection with the rights of a member of kuberewind_pruner.
func pruner(t *testing.T, r *recording) *pgx.Conn {
	t.Helper()
	conn := connect(t, r.url)
	run(t, conn, "SET ROLE "+migrations.PrunerRole)
	return conn
}

func refused(t *testing.T, conn *pgx.Conn, sql string) string {
	t.Helper()
	_, err := conn.Exec(t.Context(), sql)
	var refusal *pgconn.PgError
	require.ErrorAs(t, err, &refusal, sql)
	return refusal.Code + " " + refusal.Message
}

func TestADayIsDroppedOnlyAfterItsLivingObjectsAreStoredAgain(t *testing.T) {
	r, _ := threeDays(t, false)
	conn := pruner(t, r)
	require.Contains(t, refused(t, conn, "SELECT kuberewind.prune_day('2026-03-01', 'age')"), "55000 the day 2026-03-01 cannot be dropped: the cluster prod keeps it: no sweep of it is complete after that day")
	run(t, r.admin, "INSERT INTO kuberewind.sweeps VALUES (1, '2026-03-03', 1, 5, 5, $1, 2)", r.now)
	require.Contains(t, refused(t, conn, "SELECT kuberewind.prune_day('2026-03-01', 'age')"), "the cluster prod keeps it: 1 of its objects have no keyframe in its sweep of 2026-03-03", "the function checks a sweep against the deltas")
	require.Contains(t, refused(t, conn, "SELECT kuberewind.prune_day('2026-03-02', 'age')"), "2026-03-01 is older, and goes first")
	require.Contains(t, refused(t, conn, "SELECT kuberewind.prune_day('2025-03-02', 'age')"), "it has no partition")
	require.Contains(t, refused(t, conn, "SELECT kuberewind.prune_day(NULL, 'age')"), "it has no partition")
	require.Equal(t, 6, one[int](t, r.admin, "SELECT count(*)::int FROM kuberewind.deltas"))
}

func TestADroppedDayIsRecordedAndTheRestIsComplete(t *testing.T) {
	r, versions := threeDays(t, true)
	run(t, r.admin, `INSERT INTO kuberewind.checkpoints VALUES (1, 2, now(), now(), 1, 1, 1, '\x', '{}'), (1, 7, now(), now(), 1, 1, 1, '\x', '{}')`)
	run(t, r.admin, `INSERT INTO kuberewind.checkpoint_blocks VALUES (1, 2, 0, 1, '\x', '\x'), (1, 7, 0, 1, '\x', '\x')`)
	run(t, r.admin, `INSERT INTO kuberewind.documents VALUES (1, '\x01', '1'), (1, '\x02', '2'), (1, '\x03', '3')`)
	run(t, r.admin, `INSERT INTO kuberewind.server_data VALUES (1, '/version', $1, '\x01'), (1, '/version', $2, '\x02'), (1, '/version', $3, '\x03')`,
		day1, day2, r.now)
	run(t, r.admin, `INSERT INTO kuberewind.activity SELECT cluster, day, first_seq, last_seq, 'hour', 1, '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}' FROM kuberewind.days`)
	conn := pruner(t, r)
	require.Contains(t, refused(t, conn, "SELECT kuberewind.prune_day('2026-03-01', '')"), "say why")
	require.Positive(t, one[int64](t, conn, "SELECT kuberewind.prune_day('2026-03-01', 'older than 1d')"))
	require.Positive(t, one[int64](t, conn, "SELECT kuberewind.prune_day('2026-03-02', 'older than 1d')"))
	require.Contains(t, refused(t, conn, "SELECT kuberewind.prune_day('2026-03-03', 'age')"), "the cluster prod keeps it: no sweep of it is complete after that day")
	require.Equal(t, "1 1 1", one[string](t, conn, "SELECT concat_ws(' ', checkpoints, lives, documents) FROM kuberewind.prune_rest()"))

	login := one[string](t, r.admin, "SELECT session_user::text")
	require.Equal(t, []string{"prod 2026-03-01 1 3 t t " + login + " older than 1d", "prod 2026-03-02 4 4 t t " + login + " older than 1d"},
		column[string](t, r.reader, "SELECT concat_ws(' ', cluster, day, first_seq, last_seq, bytes > 0, pruned_at <= now(), pruned_by, reason) FROM kuberewind.prunes ORDER BY day"))
	require.Equal(t, []string{"new", "web"}, column[string](t, r.admin, "SELECT name FROM kuberewind.lives ORDER BY name"))
	require.Equal(t, []int64{7}, column[int64](t, r.admin, "SELECT checkpoint FROM kuberewind.checkpoint_blocks"))
	require.Equal(t, []string{"2026-03-03"}, column[string](t, r.admin, "SELECT day::text FROM kuberewind.activity"), "the counts of a day are deleted with it")
	require.Equal(t, []string{"2", "3"}, column[string](t, r.admin, "SELECT content::text FROM kuberewind.documents ORDER BY 1"))
	require.Equal(t, 1, one[int](t, r.admin, "SELECT count(*)::int FROM kuberewind.days"))

	require.Equal(t, string(versions[2].Content), r.object("web", "now"))
	require.Equal(t, string(versions[2].Content), r.object("web", "seq:6"))
	require.Equal(t, string(versions[5].Content), r.object("new", "now"))
	for _, at := range []string{"seq:5", "seq:1", "2026-03-03T12:30:00Z", "2026-03-01T12:00:00Z", "rv:1001", "rv:1004"} {
		require.Contains(t, r.fails("SELECT kuberewind.object_at('', 'apps', 'deployments', 'shop', 'web', $1::text)", at), "before what is left of the record: the days up to 2026-03-02 were dropped", at)
	}
	require.Equal(t, string(versions[2].Content), r.object("web", "rv:1005"))
	require.Equal(t, []string{"pruned 2026-03-01 12:00 - 2026-03-03 13:00", "complete 2026-03-03 13:00 -", "stopped 2026-03-03 14:00 -"}, column[string](t, r.reader, `
		SELECT concat_ws(' ', CASE WHEN complete THEN 'complete' ELSE cause END, to_char(from_at, 'YYYY-MM-DD HH24:MI'), '-', CASE WHEN cause = 'pruned' THEN to_char(to_at, 'YYYY-MM-DD HH24:MI') END)
		FROM kuberewind.coverage ORDER BY from_at, to_at NULLS LAST`))

	report, err := verify.Chain(t.Context(), r.admin, "prod")
	require.NoError(t, err)
	require.Empty(t, report.Breaks)
	r.sink.Close()
	r.open()
	st := r.stream("apps", "deployments", "Deployment", true)
	r.commit(watched(st, delta.Updated, r.made("shop", "web", "uid-1", `{"replicas":3}`)))
	require.Equal(t, `[{"op": "replace", "old": 2, "path": "/spec/replicas", "value": 3}]`, one[string](t, r.admin, "SELECT patch::text FROM kuberewind.deltas ORDER BY seq DESC LIMIT 1"),
		"a recorder that starts finds all that lives")
}

// Prunes may run at the same time: jobs of two teams, or one by hand while the job runs.
func TestPruningDuringPruneRestKeepsLivesAndEndsTogether(t *testing.T) {
	r, _ := threeDays(t, true)
	run(t, r.admin, "INSERT INTO kuberewind.lives VALUES (1, 0, 1, 'shop', 'older', 'uid-0')")
	run(t, r.admin, "INSERT INTO kuberewind.ends VALUES (1, 0, 1)")
	first, second := pruner(t, r), pruner(t, r)
	run(t, first, "SELECT kuberewind.prune_day('2026-03-01', 'age')")
	holder, err := connect(t, r.url).Begin(t.Context())
	require.NoError(t, err)
	run(t, holder, "SELECT FROM kuberewind.lives WHERE object_id = 0 FOR UPDATE")
	var rest errgroup.Group
	rest.Go(func() error {
		_, err := second.Exec(t.Context(), "SELECT * FROM kuberewind.prune_rest()")
		return err
	})
	eventually(t, r.admin, "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock')")
	run(t, first, "SELECT kuberewind.prune_day('2026-03-02', 'age')")
	require.NoError(t, holder.Rollback(t.Context()))
	require.NoError(t, rest.Wait())

	require.Equal(t, int64(1), one[int64](t, first, "SELECT lives FROM kuberewind.prune_rest()"), "the life that ended on the second day")
	require.Equal(t, []string{"new", "web"}, column[string](t, r.admin, "SELECT name FROM kuberewind.lives ORDER BY name"))
	require.Empty(t, column[int64](t, r.admin, "SELECT object_id FROM kuberewind.ends"))
}

// another records another cluster into the database of r, from the first day on.
func another(t *testing.T, r *recording, name string) *recording {
	t.Helper()
	other := &recording{t: t, url: r.url, admin: r.admin, reader: r.reader, now: day1, rv: 1000, cfg: r.cfg}
	other.cfg.ClusterUID, other.cfg.ClusterName = "uid-of-"+name, name
	other.cfg.Now = func() time.Time { return other.now }
	other.open()
	t.Cleanup(func() { other.sink.Close() })
	return other
}

func TestADayThatOneClusterNeedsStaysAndTheErrorNamesIt(t *testing.T) {
	r, _ := threeDays(t, true)
	other := another(t, r, "staging")
	st, err := other.sink.Stream(t.Context(), postgres.StreamSpec{Resource: "configmaps", Kind: "ConfigMap", Version: "v1", Namespaced: true})
	require.NoError(t, err)
	other.listed(st.ID())
	kept := other.made("shop", "settings", "uid-9", `{"a":1}`)
	other.commit(watched(st.ID(), delta.Added, kept))
	conn := pruner(t, r)
	prune := func() string { return refused(t, conn, "SELECT kuberewind.prune_day('2026-03-01', 'age')") }
	require.Equal(t, "55000 the day 2026-03-01 cannot be dropped: the cluster staging keeps it: no sweep of it is complete after that day, "+
		"and its recorder has stopped: it wrote last at 2026-03-01 12:00:00+00; start it, and it sweeps", prune())

	run(t, r.admin, "DELETE FROM kuberewind.sweeps")
	require.Regexp(t, "the cluster prod keeps it: .*; start it, and it sweeps. And the cluster staging keeps it: ", prune(), "both are named")
	run(t, r.admin, "UPDATE kuberewind.heads SET observed_at = now()")
	require.Equal(t, "55000 the day 2026-03-01 cannot be dropped: the cluster prod keeps it: no sweep of it is complete after that day. "+
		"And the cluster staging keeps it: no sweep of it is complete after that day", prune(), "their recorders run, and will sweep")
	require.Equal(t, 8, one[int](t, r.admin, "SELECT count(*)::int FROM kuberewind.deltas"), "a day is dropped for all clusters or for none")
}

func TestADayIsDroppedWhenEveryClusterHasSweptAfterIt(t *testing.T) {
	r, _ := threeDays(t, true)
	other := another(t, r, "staging")
	st, err := other.sink.Stream(t.Context(), postgres.StreamSpec{Resource: "configmaps", Kind: "ConfigMap", Version: "v1", Namespaced: true})
	require.NoError(t, err)
	other.listed(st.ID())
	kept := other.made("shop", "settings", "uid-9", `{"a":1}`)
	other.commit(watched(st.ID(), delta.Added, kept))
	other.now = other.now.AddDate(0, 0, 1)
	other.sink.CompleteSweep(other.now)
	other.commit(known(t, other.sink, st, "shop/settings"))
	require.True(t, other.sink.Swept(other.now))
	other.commit(watched(st.ID(), delta.Updated, other.made("shop", "settings", "uid-9", `{"a":2}`)))

	conn := pruner(t, r)
	require.Positive(t, one[int64](t, conn, "SELECT kuberewind.prune_day('2026-03-01', 'age')"))
	require.Equal(t, []string{"prod 1 3", "staging 1 1"}, column[string](t, r.admin, "SELECT concat_ws(' ', cluster, first_seq, last_seq) FROM kuberewind.prunes ORDER BY cluster"))
	require.JSONEq(t, string(kept.Content), one[string](t, r.admin, "SELECT kuberewind.object_at('staging', '', 'configmaps', 'shop', 'settings', 'seq:2')::text"), "an object that outlives the day is complete")
	require.Contains(t, refused(t, conn, "SELECT kuberewind.prune_day('2026-03-02', 'age')"), "the cluster staging keeps it: no sweep of it is complete after that day")
}

func TestAFalseSweepDropsNoDay(t *testing.T) {
	r, _ := threeDays(t, false)
	writer, conn := connect(t, r.url), pruner(t, r)
	run(t, writer, "SET ROLE "+migrations.WriterRole)
	for _, seq := range []string{"0", "4", "6", "1000"} {
		run(t, writer, "INSERT INTO kuberewind.sweeps VALUES (1, '2026-03-04', 1, 0, "+seq+", '2026-03-05', 0)")
		require.Contains(t, refused(t, conn, "SELECT kuberewind.prune_day('2026-03-01', 'age')"), "55000 the day 2026-03-01 cannot be dropped: ", seq)
		run(t, r.admin, "DELETE FROM kuberewind.sweeps")
	}
	require.Equal(t, 6, one[int](t, r.admin, "SELECT count(*)::int FROM kuberewind.deltas"))
}

func TestADayStaysForAClusterThatHasOnlyPrunesOnRecord(t *testing.T) {
	r, _ := threeDays(t, true)
	conn := pruner(t, r)
	run(t, conn, "SELECT kuberewind.prune_day('2026-03-01', 'age')")
	run(t, conn, "SELECT kuberewind.prune_day('2026-03-02', 'age')")
	run(t, r.admin, "DELETE FROM kuberewind.deltas_data; DELETE FROM kuberewind.days; DELETE FROM kuberewind.batches; DELETE FROM kuberewind.sweeps")
	require.Contains(t, refused(t, conn, "SELECT kuberewind.prune_day('2026-03-03', 'age')"), "the cluster prod keeps it: no sweep of it is complete after that day", "the cluster did not begin later")
}

func TestThePrunerMayOnlyDropDays(t *testing.T) {
	r, _ := threeDays(t, true)
	tx := as(t, r.url, migrations.PrunerRole)
	require.NoError(t, migrations.Check(t.Context(), tx))
	for _, sql := range []string{
		"DELETE FROM kuberewind.deltas_data", "DROP TABLE kuberewind.deltas_p20260301", "SELECT * FROM kuberewind.deltas", "SELECT * FROM kuberewind.deltas_data",
		"INSERT INTO kuberewind.sweeps VALUES (1, '2026-03-09', 1, 1, 1, now(), 0)", "DELETE FROM kuberewind.prunes_data", "TRUNCATE kuberewind.lives",
		"SELECT kuberewind.ensure_day('2026-03-09')", "CREATE TABLE kuberewind.mine (a int)",
	} {
		if sql == "DROP TABLE kuberewind.deltas_p20260301" {
			inner, err := tx.Begin(t.Context())
			require.NoError(t, err)
			_, err = inner.Exec(t.Context(), sql)
			require.ErrorContains(t, err, "must be owner")
			require.NoError(t, inner.Rollback(t.Context()))
			continue
		}
		denied(t, tx, sql)
	}
	for _, role := range []string{migrations.WriterRole, migrations.AuditorRole} {
		denied(t, as(t, r.url, role), "SELECT kuberewind.prune_day('2026-03-01', 'age')")
		denied(t, as(t, r.url, role), "SELECT * FROM kuberewind.prune_rest()")
	}
	denied(t, as(t, r.url, migrations.WriterRole), "DELETE FROM kuberewind.sweeps")
	denied(t, as(t, r.url, migrations.WriterRole), "INSERT INTO kuberewind.prunes_data SELECT * FROM kuberewind.prunes_data")
}

func TestAReaderDelaysAPruneWithoutBlockingTheRecorder(t *testing.T) {
	r, _ := threeDays(t, true)
	reading, err := connect(t, r.url).Begin(t.Context())
	require.NoError(t, err)
	require.Equal(t, 7, one[int](t, reading, "SELECT count(*)::int FROM kuberewind.deltas_data"))
	conn := pruner(t, r)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	_, err = conn.Exec(ctx, "SELECT kuberewind.prune_day('2026-03-01', 'age')")
	require.ErrorContains(t, err, "lock timeout")
	st := r.stream("apps", "deployments", "Deployment", true)
	r.commit(watched(st, delta.Updated, r.made("shop", "web", "uid-1", `{"replicas":3}`)))
	require.NoError(t, reading.Rollback(t.Context()))
	run(t, conn, "SELECT kuberewind.prune_day('2026-03-01', 'age')")
}
