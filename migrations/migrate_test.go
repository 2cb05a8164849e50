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
		require.NoError(t, migrations.Up(t.Context(), url, discard()), "an up-to-date schema is no error")

		require.NoError(t, migrations.Down(t.Context(), url, false))
		require.ErrorIs(t, migrations.Check(t.Context(), conn), migrations.ErrMissing)
		require.Equal(t, []string{"schema_migrations"}, objectsOf(t, conn), "only golang-migrate's own table stays")
	}
	require.NoError(t, migrations.Down(t.Context(), url, false), "a missing schema is no error")
}

func objectsOf(t *testing.T, conn querier) []string {
	t.Helper()
	return column[string](t, conn, `SELECT relname::text FROM pg_class WHERE relnamespace = 'kuberewind'::regnamespace AND relkind IN ('r', 'p', 'v')
		UNION ALL SELECT proname::text FROM pg_proc WHERE pronamespace = 'kuberewind'::regnamespace`)
}

// definitionsOf returns the definition of each object in the schema, as PostgreSQL prints it.
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

func TestEachMigrationSetsItsNumberAndIsUndoneExactly(t *testing.T) {
	url := newDatabase(t)
	conn := connect(t, url)
	var before []string
	for version := migrations.First; version <= migrations.Latest(); version++ {
		require.NoError(t, migrations.To(t.Context(), url, version))
		require.Equal(t, version, one[int](t, conn, "SELECT kuberewind.schema_version()"))
		require.Equal(t, fmt.Sprint(version, false), one[string](t, conn, "SELECT version || ' ' || dirty FROM kuberewind.schema_migrations"))

		after := definitionsOf(t, conn)
		if version > migrations.First {
			require.NoError(t, migrations.To(t.Context(), url, version-1))
			require.Equal(t, version-1, one[int](t, conn, "SELECT kuberewind.schema_version()"))
			require.ElementsMatch(t, before, definitionsOf(t, conn))
			require.NoError(t, migrations.To(t.Context(), url, version))
		}
		before = after
	}
}

func TestDownIsRefusedOnAFilledRecordUnlessForced(t *testing.T) {
	url, conn := migrated(t)
	fill(t, conn)

	err := migrations.Down(t.Context(), url, false)
	require.ErrorIs(t, err, migrations.ErrFilled)
	require.ErrorContains(t, err, "force")
	require.NoError(t, migrations.Check(t.Context(), conn), "the schema is still complete")

	require.NoError(t, migrations.Down(t.Context(), url, true))
	require.ErrorIs(t, migrations.Check(t.Context(), conn), migrations.ErrMissing)
}

func TestDownWaitsForACommitInProgressAndThenRefuses(t *testing.T) {
	url, conn := migrated(t)
	fill(t, conn)
	run(t, conn, "DELETE FROM kuberewind.deltas_data")
	tx, err := conn.Begin(t.Context())
	require.NoError(t, err)
	run(t, tx, "UPDATE kuberewind.heads SET seq = seq + 1")
	insertDelta(t, tx, deltaRow{seq: 100, object: 1, day: day1, patch: "[]"})

	var down errgroup.Group
	down.Go(func() error { return migrations.Down(t.Context(), url, false) })
	eventually(t, connect(t, url), waiting)
	require.NoError(t, tx.Commit(t.Context()))
	require.ErrorIs(t, down.Wait(), migrations.ErrFilled)
	require.NoError(t, migrations.Check(t.Context(), conn))
}

func TestNewerSchemaIsRefusedWithBothNumbers(t *testing.T) {
	url, conn := migrated(t)
	run(t, conn, `CREATE OR REPLACE FUNCTION kuberewind.schema_version() RETURNS integer LANGUAGE sql STABLE RETURN 999`)
	for name, err := range map[string]error{
		"Check": migrations.Check(t.Context(), conn),
		"Up":    migrations.Up(t.Context(), url, discard()),
		"Down":  migrations.Down(t.Context(), url, true),
	} {
		require.ErrorIs(t, err, migrations.ErrNewer, name)
		require.ErrorContains(t, err, "999", name)
		require.ErrorContains(t, err, fmt.Sprint(migrations.Latest()), name)
	}
	require.NotEmpty(t, objectsOf(t, conn))
}

func TestOlderSchemaIsReportedWithBothNumbersAndMigrated(t *testing.T) {
	url := newDatabase(t)
	conn := connect(t, url)
	require.NoError(t, migrations.To(t.Context(), url, migrations.First))
	err := migrations.Check(t.Context(), conn)
	require.ErrorIs(t, err, migrations.ErrOlder)
	require.ErrorContains(t, err, fmt.Sprintf("version %d,", migrations.First))
	require.ErrorContains(t, err, fmt.Sprint(migrations.Latest()))
	require.NoError(t, migrations.Up(t.Context(), url, discard()))
	require.NoError(t, migrations.Check(t.Context(), conn))
}

func TestConcurrentMigratorsAllSucceed(t *testing.T) {
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
