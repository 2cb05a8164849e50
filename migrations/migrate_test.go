package migrations_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/kuberewind/kuberewind/migrations"
)

func TestSchemaGoesUpAndDownAndUpAgain(t *testing.T) {
	url := newDatabase(t)
	conn := connect(t, url)
	require.ErrorIs(t, migrations.Check(t.Context(), conn), migrations.ErrMissing)
	for range 2 {
		require.NoError(t, migrations.Up(t.Context(), url, discard()))
		require.NoError(t, migrations.Check(t.Context(), conn))
		require.NotEmpty(t, objectsOf(t, conn))
		require.NoError(t, migrations.Up(t.Context(), url, discard()), "nothing to do is no error")

		require.NoError(t, migrations.Down(t.Context(), url, false))
		require.ErrorIs(t, migrations.Check(t.Context(), conn), migrations.ErrMissing)
		require.Equal(t, []string{"schema_migrations"}, objectsOf(t, conn), "only golang-migrate's own table stays")
	}
	require.NoError(t, migrations.Down(t.Context(), url, false), "nothing to remove is no error")
}

func objectsOf(t *testing.T, conn querier) []string {
	t.Helper()
	return column[string](t, conn, `SELECT relname::text FROM pg_class WHERE relnamespace = 'kuberewind'::regnamespace AND relkind IN ('r', 'p', 'v')
		UNION ALL SELECT proname::text FROM pg_proc WHERE pronamespace = 'kuberewind'::regnamespace`)
}

// definitionsOf says of everything in the schema what it is, as PostgreSQL says it.
func definitionsOf(t *testing.T, conn querier) []string {
	t.Helper()
	return column[string](t, conn, `WITH relations AS (SELECT oid, relname, relkind FROM pg_class WHERE relnamespace = 'kuberewind'::regnamespace)
		SELECT concat_ws(' ', r.relkind, r.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attcompression, pg_get_expr(d.adbin, d.adrelid), col_description(r.oid, a.attnum))
		FROM relations r JOIN pg_attribute a ON a.attrelid = r.oid AND a.attnum > 0 AND NOT a.attisdropped LEFT JOIN pg_attrdef d ON d.adrelid = r.oid AND d.adnum = a.attnum
		UNION ALL SELECT concat_ws(' ', relkind, relname, obj_description(oid, 'pg_class')) FROM relations
		UNION ALL SELECT concat_ws(' ', relname, pg_get_viewdef(oid)) FROM relations WHERE relkind = 'v'
		UNION ALL SELECT pg_get_indexdef(oid) FROM relations WHERE relkind IN ('i', 'I')
		UNION ALL SELECT concat_ws(' ', conrelid::regclass, conname, pg_get_constraintdef(oid)) FROM pg_constraint WHERE connamespace = 'kuberewind'::regnamespace
		UNION ALL SELECT concat_ws(' ', pg_get_functiondef(oid), obj_description(oid, 'pg_proc')) FROM pg_proc WHERE pronamespace = 'kuberewind'::regnamespace AND prokind = 'f'
		UNION ALL SELECT oid::regprocedure::text FROM pg_proc WHERE pronamespace = 'kuberewind'::regnamespace`)
}

func TestEachMigrationSaysItsOwnNumberAndIsUndoneExactly(t *testing.T) {
	url := newDatabase(t)
	conn := connect(t, url)
	var before []string
	for version := 1; version <= migrations.Latest(); version++ {
		require.NoError(t, migrations.To(t.Context(), url, version))
		require.Equal(t, version, one[int](t, conn, "SELECT kuberewind.schema_version()"))
		require.Equal(t, fmt.Sprint(version, false), one[string](t, conn, "SELECT version || ' ' || dirty FROM kuberewind.schema_migrations"))

		after := definitionsOf(t, conn)
		if version > 1 {
			require.NoError(t, migrations.To(t.Context(), url, version-1))
			require.Equal(t, version-1, one[int](t, conn, "SELECT kuberewind.schema_version()"))
			require.ElementsMatch(t, before, definitionsOf(t, conn))
			require.NoError(t, migrations.To(t.Context(), url, version))
		}
		before = after
	}
}

func TestVersion8WithTheIndexInItsPlaceIsBroughtToVersion9(t *testing.T) {
	url, conn := migrated(t)
	require.NoError(t, migrations.To(t.Context(), url, 9))
	want := definitionsOf(t, conn)
	require.NoError(t, migrations.To(t.Context(), url, 8))
	run(t, conn, "DROP INDEX kuberewind.lives_by_uid; ALTER INDEX kuberewind.lives_by_uid_hash RENAME TO lives_by_uid")
	require.NoError(t, migrations.To(t.Context(), url, 9))
	require.ElementsMatch(t, want, definitionsOf(t, conn))
}

func TestEndsOfLivesAreMovedAndMovedBack(t *testing.T) {
	url := newDatabase(t)
	require.NoError(t, migrations.To(t.Context(), url, 5))
	conn := connect(t, url)
	run(t, conn, `INSERT INTO kuberewind.lives VALUES (1, 1, 1, 'a', 'x', 'uid-1', 5), (1, 6, 1, 'a', 'x', 'uid-6', NULL), (2, 1, 3, '', 'n', 'uid-2', NULL)`)
	lives := func() []string {
		return column[string](t, conn, `SELECT concat_ws(' ', cluster, object_id, stream, namespace, name, uid, deleted_seq) FROM kuberewind.record_lives ORDER BY 1`)
	}
	before := lives()
	require.Equal(t, []string{"1 1 1 a x uid-1 5", "1 6 1 a x uid-6", "2 1 3  n uid-2"}, before)
	require.NoError(t, migrations.To(t.Context(), url, 6))
	require.Equal(t, before, lives())
	require.Equal(t, []string{"1 1 5"}, column[string](t, conn, `SELECT concat_ws(' ', cluster, object_id, seq) FROM kuberewind.ends`))
	require.Equal(t, []string{"1 1 6", "2 3 1"}, column[string](t, conn, `SELECT concat_ws(' ', cluster, stream, object_id) FROM kuberewind.living ORDER BY 1`))
	require.NoError(t, migrations.To(t.Context(), url, 5))
	require.Equal(t, before, lives())
	require.Equal(t, []string{"6", "1"}, column[string](t, conn, `SELECT object_id::text FROM kuberewind.lives WHERE deleted_seq IS NULL ORDER BY cluster`))
}

func TestEndsOfLivesThatAreBeingCommittedAreMovedToo(t *testing.T) {
	url := newDatabase(t)
	require.NoError(t, migrations.To(t.Context(), url, 5))
	writer, err := connect(t, url).Begin(t.Context())
	require.NoError(t, err)
	run(t, writer, "UPDATE kuberewind.heads SET seq = seq")
	run(t, writer, `INSERT INTO kuberewind.lives VALUES (1, 1, 1, 'a', 'x', 'uid-1', 5), (1, 6, 1, 'a', 'x', 'uid-6', NULL)`)
	watcher := connect(t, url)
	up := start(t.Context(), url)
	eventually(t, watcher, waiting)
	require.NoError(t, writer.Commit(t.Context()))
	require.NoError(t, up.Wait())
	require.Equal(t, "1 1", one[string](t, watcher, `SELECT concat_ws(' ', (SELECT count(*) FROM kuberewind.ends), (SELECT count(*) FROM kuberewind.living))`))
}

func TestDownIsRefusedOnAFilledRecordUnlessForced(t *testing.T) {
	url, conn := migrated(t)
	fill(t, conn)

	err := migrations.Down(t.Context(), url, false)
	require.ErrorIs(t, err, migrations.ErrFilled)
	require.ErrorContains(t, err, "force")
	require.NoError(t, migrations.Check(t.Context(), conn), "nothing was taken away")

	require.NoError(t, migrations.Down(t.Context(), url, true))
	require.ErrorIs(t, migrations.Check(t.Context(), conn), migrations.ErrMissing)
}

func TestDownWaitsForACommitInProgressAndIsRefusedByIt(t *testing.T) {
	url, conn := migrated(t)
	fill(t, conn)
	run(t, conn, "DELETE FROM kuberewind.deltas_data")
	tx, err := conn.Begin(t.Context())
	require.NoError(t, err)
	run(t, tx, "UPDATE kuberewind.heads SET seq = seq + 1")
	insertDelta(t, tx, delta{seq: 100, object: 1, day: day1, patch: "[]"})

	var down errgroup.Group
	down.Go(func() error { return migrations.Down(t.Context(), url, false) })
	eventually(t, connect(t, url), waiting)
	require.NoError(t, tx.Commit(t.Context()))
	require.ErrorIs(t, down.Wait(), migrations.ErrFilled)
	require.NoError(t, migrations.Check(t.Context(), conn))
}

func TestNewerSchemaIsRefusedWithBothNumbers(t *testing.T) {
	url, conn := migrated(t)
	run(t, conn, `CREATE OR REPLACE FUNCTION kuberewind.schema_version() RETURNS integer LANGUAGE sql STABLE RETURN 99`)
	for name, err := range map[string]error{
		"Check": migrations.Check(t.Context(), conn),
		"Up":    migrations.Up(t.Context(), url, discard()),
		"Down":  migrations.Down(t.Context(), url, true),
	} {
		require.ErrorIs(t, err, migrations.ErrNewer, name)
		require.ErrorContains(t, err, "99", name)
		require.ErrorContains(t, err, fmt.Sprint(migrations.Latest()), name)
	}
	require.NotEmpty(t, objectsOf(t, conn))
}

func TestOlderSchemaIsReportedWithBothNumbersAndMigrated(t *testing.T) {
	url := newDatabase(t)
	conn := connect(t, url)
	require.NoError(t, migrations.To(t.Context(), url, 1))
	err := migrations.Check(t.Context(), conn)
	require.ErrorIs(t, err, migrations.ErrOlder)
	require.ErrorContains(t, err, "version 1,")
	require.ErrorContains(t, err, fmt.Sprint(migrations.Latest()))
	require.NoError(t, migrations.Up(t.Context(), url, discard()))
	require.NoError(t, migrations.Check(t.Context(), conn))
}

func TestManyMigratorsAtOnceAllSucceed(t *testing.T) {
	url := newDatabase(t)
	group, ctx := errgroup.WithContext(t.Context())
	for range 8 {
		group.Go(func() error { return migrations.Up(ctx, url, discard()) })
	}
	require.NoError(t, group.Wait())
	require.NoError(t, migrations.Check(t.Context(), connect(t, url)))
}

func TestEveryFormOfURLWorks(t *testing.T) {
	url := newDatabase(t)
	require.Contains(t, url, "?")
	config, err := pgx.ParseConfig(url)
	require.NoError(t, err)
	for _, form := range []string{
		strings.Replace(url, "postgres://", "postgresql://", 1) + "&pool_max_conns=3",
		dsn(config, config.User, config.Password, config.Database),
	} {
		require.NoError(t, migrations.Up(t.Context(), form, discard()), form)
		require.NoError(t, migrations.Down(t.Context(), form, false), form)
	}
}

func TestUnreachableServerAndBadURLAreClearErrors(t *testing.T) {
	err := migrations.Up(t.Context(), "postgres://someone:secret@127.0.0.1:1/record?connect_timeout=5", discard())
	require.ErrorContains(t, err, "127.0.0.1")
	require.NotContains(t, err.Error(), "secret")
	err = migrations.Up(t.Context(), "postgres://someone:secret@127.0.0.1:port/record", discard())
	require.Error(t, err)
	require.NotContains(t, err.Error(), "secret")
}

func TestDatabaseThatCannotHoldUnicodeIsRefused(t *testing.T) {
	admin := connect(t, newDatabase(t))
	name := one[string](t, admin, "SELECT current_database() || '_latin'")
	run(t, admin, "CREATE DATABASE "+name+" ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
	t.Cleanup(func() {
		_, err := admin.Exec(context.Background(), "DROP DATABASE "+name+" WITH (FORCE)")
		require.NoError(t, err)
	})
	config := admin.Config()
	url := dsn(config, config.User, config.Password, name)
	require.ErrorContains(t, migrations.Up(t.Context(), url, discard()), "LATIN1")
}
