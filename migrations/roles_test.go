package migrations_test

import (
	"testing"

	"github.com/golang-migrate/migrate/v4/database"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/kuberewind/kuberewind/internal/pgtest"
	"github.com/kuberewind/kuberewind/migrations"
)

// withRoles returns a database with a small record in it and the roles set up.
func withRoles(t *testing.T) (url string, conn *pgx.Conn) {
	t.Helper()
	url, conn = migrated(t)
	fill(t, conn)
	missing, err := migrations.Roles(t.Context(), conn)
	require.NoError(t, err)
	require.Empty(t, missing)
	return url, conn
}

// denied requires that a statement fails because a right is missing. The transaction stays usable.
func denied(t *testing.T, tx pgx.Tx, sql string) {
	t.Helper()
	inner, err := tx.Begin(t.Context())
	require.NoError(t, err)
	_, err = inner.Exec(t.Context(), sql)
	require.NoError(t, inner.Rollback(t.Context()))
	var pgErr *pgconn.PgError
	require.ErrorAs(t, err, &pgErr, sql)
	require.Equal(t, "42501", pgErr.Code, sql)
}

// as begins a transaction under another role. The transaction ends with the test.
func as(t *testing.T, url, role string) pgx.Tx {
	t.Helper()
	tx, err := connect(t, url).Begin(t.Context())
	require.NoError(t, err)
	run(t, tx, "SET LOCAL ROLE "+role)
	return tx
}

func TestTheWriterCanAddToTheRecordAndNotChangeIt(t *testing.T) {
	url, conn := withRoles(t)
	session := connect(t, url)
	writer, err := migrations.BecomeWriter(t.Context(), session)
	require.NoError(t, err)
	require.True(t, writer)
	tx, err := session.Begin(t.Context())
	require.NoError(t, err)
	require.Equal(t, migrations.WriterRole, one[string](t, tx, "SELECT current_user::text"))

	for _, sql := range []string{
		"SELECT kuberewind.ensure_day('2026-03-09')",
		"SELECT * FROM kuberewind.heads FOR UPDATE",
		"UPDATE kuberewind.heads SET seq = 10, batch = 4",
		"INSERT INTO kuberewind.lives VALUES (1, 10, 1, 'default', 'new', 'uid-10')",
		"INSERT INTO kuberewind.deltas_data SELECT * FROM kuberewind.deltas_data WHERE seq = 1",
		`INSERT INTO kuberewind.batches VALUES (1, 4, 2, 10, 10, '2026-03-09Z', now(), '\x')`,
		"INSERT INTO kuberewind.living VALUES (1, 1, 10)",
		"INSERT INTO kuberewind.ends VALUES (1, 6, 10)",
		"SELECT kuberewind.end_living(1, '{1}', '{6}')",
		"UPDATE kuberewind.streams SET position = '5'",
		"UPDATE kuberewind.days SET last_seq = 10",
		"UPDATE kuberewind.clusters SET name = 'other'",
		"INSERT INTO kuberewind.gaps_data (cluster, gap, stream, cause, detail, opened_batch) VALUES (1, 1, 1, 'expired', '', 4)",
		"UPDATE kuberewind.gaps_data SET to_rv = '1', to_at = now(), closed_batch = 4, outcome = 'resumed', appeared = 0, changed = 0, vanished = 0, unchanged = 0, detail = 'more'",
		"INSERT INTO kuberewind.exclusions VALUES (1, 1, 'u', 'n', 'n', now())",
		"DELETE FROM kuberewind.exclusions",
		"INSERT INTO kuberewind.pauses_data VALUES (1, 3, now(), now(), 10)",
		"INSERT INTO kuberewind.leaders VALUES ('uid', 'host-1', 'token', now(), '7s')",
		"UPDATE kuberewind.leaders SET renewed_at = clock_timestamp()",
		"INSERT INTO kuberewind.standbys VALUES ('uid', 'host-2', now(), '7s')",
		"SELECT * FROM kuberewind.record_standbys",
		"DELETE FROM kuberewind.standbys",
		"SELECT * FROM kuberewind.deltas, kuberewind.objects LIMIT 1",
	} {
		run(t, tx, sql)
	}
	require.NoError(t, migrations.Check(t.Context(), tx))
	for _, sql := range []string{
		"UPDATE kuberewind.deltas_data SET manager = 'someone else'",
		"DELETE FROM kuberewind.deltas_data",
		"TRUNCATE kuberewind.deltas_data",
		"DROP TABLE kuberewind.deltas_data",
		"DROP TABLE kuberewind.deltas_p20260301",
		"DELETE FROM kuberewind.deltas_p20260301",
		"UPDATE kuberewind.deltas_p20260309 SET manager = NULL",
		"TRUNCATE kuberewind.deltas_p20260309",
		"SELECT * FROM kuberewind.deltas_p20260309",
		"ALTER TABLE kuberewind.deltas_data DETACH PARTITION kuberewind.deltas_p20260301",
		"UPDATE kuberewind.batches SET digest = NULL",
		"DELETE FROM kuberewind.batches",
		"UPDATE kuberewind.lives SET name = 'x'",
		"DELETE FROM kuberewind.lives",
		"UPDATE kuberewind.ends SET seq = 11",
		"DELETE FROM kuberewind.ends",
		"UPDATE kuberewind.living SET stream = 2",
		"UPDATE kuberewind.clusters SET key_fingerprint = NULL",
		"UPDATE kuberewind.gaps_data SET cause = 'none'",
		"DELETE FROM kuberewind.gaps_data",
		"DELETE FROM kuberewind.heads",
		"UPDATE kuberewind.epochs SET config = NULL",
		"UPDATE kuberewind.pauses_data SET to_at = now()",
		"DELETE FROM kuberewind.leaders",
		"CREATE TABLE kuberewind.mine (a int)",
		"DROP FUNCTION kuberewind.ensure_day(date)",
		"DROP VIEW kuberewind.deltas",
		"UPDATE kuberewind.schema_migrations SET dirty = true",
	} {
		denied(t, tx, sql)
	}
	require.NoError(t, tx.Rollback(t.Context()))
	require.Equal(t, 9, one[int](t, conn, "SELECT count(*)::int FROM kuberewind.deltas"))
}

func TestAuditorCanReadTheViewsAndNothingElse(t *testing.T) {
	url, conn := withRoles(t)
	tx := as(t, url, migrations.AuditorRole)
	for _, view := range []string{"deltas", "changes", "objects", "gaps", "pauses", "recorders", "server"} {
		run(t, tx, "SELECT * FROM kuberewind."+view)
		require.False(t, one[bool](t, tx, "SELECT has_table_privilege('kuberewind.' || $1, 'INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER')", view), view)
	}
	require.NoError(t, migrations.Check(t.Context(), tx))
	for _, table := range column[string](t, conn, "SELECT 'kuberewind.' || relname FROM pg_class WHERE relnamespace = 'kuberewind'::regnamespace AND relkind IN ('r', 'p')") {
		denied(t, tx, "SELECT * FROM "+table)
		denied(t, tx, "DELETE FROM "+table)
	}
	denied(t, tx, "SELECT kuberewind.ensure_day('2026-03-09')")
	denied(t, tx, "CREATE TABLE kuberewind.mine (a int)")
}

func TestRolesRevokesOtherGrants(t *testing.T) {
	url, conn := withRoles(t)
	run(t, conn, "GRANT ALL ON kuberewind.deltas_data, kuberewind.deltas_p20260301 TO kuberewind_writer")
	run(t, conn, "GRANT UPDATE (rv) ON kuberewind.deltas_data TO kuberewind_auditor")
	run(t, conn, "GRANT ALL ON SCHEMA kuberewind TO kuberewind_writer, kuberewind_auditor")
	run(t, conn, "GRANT EXECUTE ON FUNCTION kuberewind.ensure_day TO kuberewind_auditor")
	_, err := migrations.Roles(t.Context(), conn)
	require.NoError(t, err)
	tx := as(t, url, migrations.WriterRole)
	run(t, tx, "SELECT * FROM kuberewind.deltas_data")
	run(t, tx, "SELECT kuberewind.ensure_day('2026-03-09')")
	denied(t, tx, "CREATE TABLE kuberewind.deltas_p20260310 (LIKE kuberewind.deltas_data INCLUDING ALL)")
	denied(t, as(t, url, migrations.AuditorRole), "CREATE TABLE kuberewind.mine (a int)")
	denied(t, as(t, url, migrations.AuditorRole), "SELECT kuberewind.ensure_day('2026-03-09')")
	denied(t, tx, "DELETE FROM kuberewind.deltas_data")
	denied(t, tx, "DELETE FROM kuberewind.deltas_p20260301")
	denied(t, as(t, url, migrations.AuditorRole), "UPDATE kuberewind.deltas_data SET rv = '1'")
}

// unknown hides the roles inside a transaction: they belong to the whole server, and other databases need them.
func unknown(t *testing.T, tx pgx.Tx) {
	t.Helper()
	run(t, tx, "ALTER ROLE kuberewind_writer RENAME TO kuberewind_writer_hidden")
	run(t, tx, "ALTER ROLE kuberewind_auditor RENAME TO kuberewind_auditor_hidden")
	run(t, tx, "ALTER ROLE kuberewind_pruner RENAME TO kuberewind_pruner_hidden")
	run(t, tx, "ALTER ROLE kuberewind_counter RENAME TO kuberewind_counter_hidden")
}

func TestAnOwnerThatMayNotMakeRolesGetsTheSQL(t *testing.T) {
	url, conn := withRoles(t)
	tx, err := connect(t, url).Begin(t.Context())
	require.NoError(t, err)
	unknown(t, tx)
	run(t, tx, `CREATE ROLE "Some Owner"`)
	run(t, tx, `ALTER SCHEMA kuberewind OWNER TO "Some Owner"`)
	run(t, tx, `SET LOCAL ROLE "Some Owner"`)

	missing, err := migrations.Roles(t.Context(), tx)
	require.NoError(t, err)
	require.Contains(t, missing, one[string](t, conn, "SELECT current_database()::text"))
	require.Contains(t, missing, "CREATE ROLE kuberewind_writer NOLOGIN;\nCREATE ROLE kuberewind_auditor NOLOGIN;\nCREATE ROLE kuberewind_pruner NOLOGIN;\nCREATE ROLE kuberewind_counter NOLOGIN;\n")

	run(t, tx, "RESET ROLE")
	run(t, tx, missing)
	run(t, tx, `SET LOCAL ROLE "Some Owner"`)
	run(t, tx, "SET LOCAL ROLE kuberewind_writer")
	run(t, tx, "UPDATE kuberewind.heads SET seq = 10")
	denied(t, tx, "DELETE FROM kuberewind.deltas_data")
	run(t, tx, "RESET ROLE")
	run(t, tx, "SET LOCAL ROLE kuberewind_auditor")
	run(t, tx, "SELECT * FROM kuberewind.deltas")
	run(t, tx, "RESET ROLE")
	require.True(t, one[bool](t, tx, "SELECT pg_has_role('kuberewind_writer', 'kuberewind_counter', 'MEMBER')"), "each login that records may count")
}

func TestAnOwnerThatMayMakeRolesMakesThemAndBecomesAWriter(t *testing.T) {
	url, _ := withRoles(t)
	session := connect(t, url)
	tx, err := session.Begin(t.Context())
	require.NoError(t, err)
	unknown(t, tx)
	run(t, tx, `CREATE ROLE "Some Owner" CREATEROLE`)
	run(t, tx, `DO $$ DECLARE r regclass; BEGIN
		FOR r IN SELECT oid FROM pg_class WHERE relnamespace = 'kuberewind'::regnamespace AND relkind IN ('r', 'p', 'v') LOOP
			EXECUTE format('ALTER TABLE %s OWNER TO "Some Owner"', r);
		END LOOP; END $$`)
	run(t, tx, `DO $$ DECLARE f regprocedure; BEGIN
		FOR f IN SELECT oid FROM pg_proc WHERE pronamespace = 'kuberewind'::regnamespace LOOP
			EXECUTE format('ALTER FUNCTION %s OWNER TO "Some Owner"', f);
		END LOOP; END $$`)
	run(t, tx, `ALTER SCHEMA kuberewind OWNER TO "Some Owner"`)
	run(t, tx, `SET LOCAL SESSION AUTHORIZATION "Some Owner"`)

	missing, err := migrations.Roles(t.Context(), tx)
	require.NoError(t, err)
	require.Empty(t, missing)
	writer, err := migrations.BecomeWriter(t.Context(), session)
	require.NoError(t, err)
	require.True(t, writer)
	run(t, tx, "UPDATE kuberewind.heads SET seq = 10")
	run(t, tx, "SELECT kuberewind.ensure_day('2026-03-09')")
	denied(t, tx, "DELETE FROM kuberewind.deltas_data")
}

func TestARoleThatDoesNotOwnTheSchemaChangesNoRights(t *testing.T) {
	url, _ := withRoles(t)
	missing, err := migrations.Roles(t.Context(), as(t, url, migrations.WriterRole))
	require.NoError(t, err)
	require.Empty(t, missing)
}

func TestALoginWithoutTheWriterRoleDoesNotBecomeAWriter(t *testing.T) {
	url, _ := withRoles(t)
	session := connect(t, url)
	tx, err := session.Begin(t.Context())
	require.NoError(t, err)
	run(t, tx, "CREATE ROLE stranger")
	run(t, tx, "SET LOCAL SESSION AUTHORIZATION stranger")
	writer, err := migrations.BecomeWriter(t.Context(), session)
	require.NoError(t, err)
	require.False(t, writer)
	require.ErrorContains(t, migrations.Check(t.Context(), tx), "GRANT kuberewind_auditor")
}

func TestRolesNeedASchema(t *testing.T) {
	_, err := migrations.Roles(t.Context(), connect(t, newDatabase(t)))
	require.ErrorIs(t, err, migrations.ErrMissing)
}

func TestRolesAreSetUpInOneDatabaseManyTimesAtOnce(t *testing.T) {
	url, _ := migrated(t)
	group, ctx := errgroup.WithContext(t.Context())
	for range 8 {
		session := connect(t, url)
		group.Go(func() error {
			_, err := migrations.Roles(ctx, session)
			return err
		})
	}
	require.NoError(t, group.Wait())
}

// Any login can hold an advisory lock, and so block another that takes the same.
func TestAnUpToDateSchemaNeedsNoAdvisoryLock(t *testing.T) {
	url, conn := withRoles(t)
	var name string
	require.NoError(t, conn.QueryRow(t.Context(), "SELECT current_database()").Scan(&name))
	key, err := database.GenerateAdvisoryLockId(name, migrations.Schema, "schema_migrations")
	require.NoError(t, err)
	run(t, conn, "SELECT pg_advisory_lock(hashtext('kuberewind roles')), pg_advisory_lock('"+key+"')")
	require.NoError(t, migrations.Up(t.Context(), url, discard()))
	session := connect(t, url)
	run(t, session, "SET lock_timeout = '10s'")
	_, err = migrations.Roles(t.Context(), session)
	require.NoError(t, err)
}

func TestRolesAreSetUpFromManyDatabasesAtOnce(t *testing.T) {
	group, ctx := errgroup.WithContext(t.Context())
	for range 4 {
		url, _ := migrated(t)
		for range 2 {
			session := connect(t, url)
			group.Go(func() error {
				_, err := migrations.Roles(ctx, session)
				return err
			})
		}
	}
	require.NoError(t, group.Wait())
}

func TestAMigratorWithoutRightsGetsAnErrorThatNamesThem(t *testing.T) {
	url := pgtest.New(t, nil).Login(t)
	require.ErrorContains(t, migrations.Up(t.Context(), url, discard()), "only the owner of the schema may do this, or, if there is no schema, a role that may create schemas")
}

func TestAMemberOfTheWriterNeedsNoMigrationAndBecomesTheWriter(t *testing.T) {
	db := pgtest.New(t, migrate)
	_, err := migrations.Roles(t.Context(), db.Connect(t))
	require.NoError(t, err)
	url := db.Login(t, migrations.WriterRole)
	require.NoError(t, migrations.Up(t.Context(), url, discard()))

	session := connect(t, url)
	missing, err := migrations.Roles(t.Context(), session)
	require.NoError(t, err)
	require.Empty(t, missing)
	writer, err := migrations.BecomeWriter(t.Context(), session)
	require.NoError(t, err)
	require.True(t, writer)
}

func TestTheCounterMayWriteCountsAndNothingElse(t *testing.T) {
	url, conn := withRoles(t)
	fill := `INSERT INTO kuberewind.activity VALUES (1, '2026-03-01', 1, 1, 'hour', 1, '{2026-03-01Z}', '{1}', '{a}', '{b}', '{added}', '{1}', '{1}', '{1}')`
	session := connect(t, url)
	counter, err := migrations.BecomeCounter(t.Context(), session)
	require.NoError(t, err)
	require.True(t, counter)
	tx, err := session.Begin(t.Context())
	require.NoError(t, err)
	require.Equal(t, migrations.CounterRole, one[string](t, tx, "SELECT current_user::text"))
	require.NoError(t, migrations.Check(t.Context(), tx))
	for _, sql := range []string{
		fill, "LOCK TABLE kuberewind.activity IN SHARE ROW EXCLUSIVE MODE", "DELETE FROM kuberewind.activity WHERE cluster = 1",
		"SELECT * FROM kuberewind.record_deltas", "SELECT * FROM kuberewind.record_activity", "SELECT * FROM kuberewind.erasures",
	} {
		run(t, tx, sql)
	}
	denied(t, tx, "UPDATE kuberewind.activity SET classifier = 2")
	denied(t, tx, "TRUNCATE kuberewind.activity")
	denied(t, tx, "CREATE TABLE kuberewind.mine (a int)")
	for _, table := range column[string](t, conn, "SELECT 'kuberewind.' || relname FROM pg_class WHERE relnamespace = 'kuberewind'::regnamespace AND relkind IN ('r', 'p') AND relname <> 'activity'") {
		denied(t, tx, "SELECT * FROM "+table)
		denied(t, tx, "DELETE FROM "+table)
		denied(t, tx, "INSERT INTO "+table+" DEFAULT VALUES")
	}
	require.NoError(t, tx.Rollback(t.Context()))
	auditor := as(t, url, migrations.AuditorRole)
	run(t, auditor, "SELECT * FROM kuberewind.record_activity")
	denied(t, auditor, "DELETE FROM kuberewind.activity")
	for _, role := range []string{migrations.AuditorRole, migrations.PrunerRole} {
		denied(t, as(t, url, role), fill)
	}
}

func TestALoginThatRecordsMayCount(t *testing.T) {
	db := pgtest.New(t, migrate)
	_, err := migrations.Roles(t.Context(), db.Connect(t))
	require.NoError(t, err)
	session := connect(t, db.Login(t, migrations.WriterRole))
	counter, err := migrations.BecomeCounter(t.Context(), session)
	require.NoError(t, err)
	require.True(t, counter)
	stranger := connect(t, db.Login(t, migrations.AuditorRole))
	counter, err = migrations.BecomeCounter(t.Context(), stranger)
	require.NoError(t, err)
	require.False(t, counter)
}

func TestARecordNeedsNoCounter(t *testing.T) {
	url, conn := withRoles(t)
	tx, err := connect(t, url).Begin(t.Context())
	require.NoError(t, err)
	run(t, tx, "ALTER ROLE kuberewind_counter RENAME TO kuberewind_counter_hidden")
	run(t, tx, `CREATE ROLE "Owner Of Much"`)
	run(t, tx, `GRANT kuberewind_writer TO "Owner Of Much"`)
	run(t, tx, `ALTER SCHEMA kuberewind OWNER TO "Owner Of Much"`)
	for _, sql := range column[string](t, conn, `SELECT format('ALTER TABLE %s OWNER TO "Owner Of Much"', oid::regclass) FROM pg_class WHERE relnamespace = 'kuberewind'::regnamespace AND relkind IN ('r', 'p', 'v')
		UNION ALL SELECT format('ALTER FUNCTION %s OWNER TO "Owner Of Much"', oid::regprocedure) FROM pg_proc WHERE pronamespace = 'kuberewind'::regnamespace`) {
		run(t, tx, sql)
	}
	run(t, tx, "REVOKE INSERT ON kuberewind.sweeps FROM kuberewind_writer")
	run(t, tx, `SET LOCAL ROLE "Owner Of Much"`)
	missing, err := migrations.Roles(t.Context(), tx)
	require.NoError(t, err)
	require.Contains(t, missing, "CREATE ROLE kuberewind_counter NOLOGIN;")
	require.Contains(t, missing, "GRANT kuberewind_counter TO kuberewind_writer;")
	require.NotContains(t, missing, "TO kuberewind_pruner")
	require.True(t, one[bool](t, tx, "SELECT has_table_privilege('kuberewind_writer', 'kuberewind.sweeps', 'INSERT')"))
	run(t, tx, "RESET ROLE")
	run(t, tx, missing)
	run(t, tx, "SET LOCAL ROLE kuberewind_writer")
	run(t, tx, "SET LOCAL ROLE kuberewind_counter")
	run(t, tx, "DELETE FROM kuberewind.activity")
}

func TestAnOwnerThatMayNotMakeThePrunerGrantsTheOtherRoles(t *testing.T) {
	url, conn := withRoles(t)
	tx, err := connect(t, url).Begin(t.Context())
	require.NoError(t, err)
	run(t, tx, "ALTER ROLE kuberewind_pruner RENAME TO kuberewind_pruner_hidden")
	run(t, tx, `CREATE ROLE "Owner Of All"`)
	run(t, tx, `GRANT kuberewind_writer TO "Owner Of All"`)
	run(t, tx, `ALTER SCHEMA kuberewind OWNER TO "Owner Of All"`)
	for _, sql := range column[string](t, conn, `SELECT format('ALTER TABLE %s OWNER TO "Owner Of All"', oid::regclass) FROM pg_class WHERE relnamespace = 'kuberewind'::regnamespace AND relkind IN ('r', 'p', 'v')`) {
		run(t, tx, sql)
	}
	for _, sql := range column[string](t, conn, `SELECT format('ALTER FUNCTION %s OWNER TO "Owner Of All"', oid::regprocedure) FROM pg_proc WHERE pronamespace = 'kuberewind'::regnamespace`) {
		run(t, tx, sql)
	}
	run(t, tx, "REVOKE INSERT ON kuberewind.sweeps FROM kuberewind_writer")
	run(t, tx, `SET LOCAL ROLE "Owner Of All"`)
	missing, err := migrations.Roles(t.Context(), tx)
	require.NoError(t, err)
	require.Contains(t, missing, "CREATE ROLE kuberewind_pruner NOLOGIN;")
	require.Contains(t, missing, "TO kuberewind_pruner")
	require.NotContains(t, missing, "kuberewind_auditor")
	require.True(t, one[bool](t, tx, "SELECT has_table_privilege('kuberewind_writer', 'kuberewind.sweeps', 'INSERT')"), "recording continues")
}
