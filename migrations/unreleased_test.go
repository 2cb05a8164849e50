package migrations_test

import (
	"fmt"
	"testing"

	"github.com/golang-migrate/migrate/v4/database"
	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/migrations"
)

// developed makes a database of a development build, at a schema from 1 to 105. If dirty, its next migration was
// interrupted.
func developed(t *testing.T, version int, dirty bool) (url string, conn querier) {
	t.Helper()
	url = newDatabase(t)
	conn = connect(t, url)
	run(t, conn, fmt.Sprintf(`CREATE SCHEMA kuberewind;
		CREATE FUNCTION kuberewind.schema_version() RETURNS integer LANGUAGE sql STABLE PARALLEL SAFE RETURN %d;
		CREATE TABLE kuberewind.schema_migrations (version bigint NOT NULL PRIMARY KEY, dirty boolean NOT NULL);
		CREATE TABLE kuberewind.heads (cluster integer NOT NULL PRIMARY KEY, seq bigint NOT NULL);
		INSERT INTO kuberewind.heads VALUES (1, 7)`, version))
	noted := version
	if dirty {
		noted++
	}
	run(t, conn, "INSERT INTO kuberewind.schema_migrations VALUES ($1, $2)", noted, dirty)
	return url, conn
}

func TestARecordOfADevelopmentBuildIsRefusedBeforeAnyWrite(t *testing.T) {
	for _, test := range []struct {
		name    string
		version int
		dirty   bool
	}{
		{"the first schema, clean", 1, false},
		{"the last schema of many steps, clean", 10, false},
		{"the last schema before the first release, clean", 105, false},
		{"the first schema, dirty", 1, true},
		{"the ninth schema, dirty", 9, true},
		{"the last schema before the first release, dirty", 104, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			url, conn := developed(t, test.version, test.dirty)
			definitions := definitionsOf(t, conn)
			note := one[string](t, conn, "SELECT version || ' ' || dirty FROM kuberewind.schema_migrations")
			for name, err := range map[string]error{
				"Check":        migrations.Check(t.Context(), conn.(migrations.Querier)),
				"Up":           migrations.Up(t.Context(), url, discard()),
				"Down":         migrations.Down(t.Context(), url, false),
				"Down, forced": migrations.Down(t.Context(), url, true),
			} {
				require.ErrorIs(t, err, migrations.ErrUnreleased, name)
				require.ErrorContains(t, err, "a development build made this record", name)
				require.ErrorContains(t, err, fmt.Sprintf("it has schema %d,", test.version), name)
				require.ErrorContains(t, err, "keep it with that build for reading, and begin a new record in another database (embedded: with another --data-dir)", name)
			}
			require.ElementsMatch(t, definitions, definitionsOf(t, conn))
			require.Equal(t, note, one[string](t, conn, "SELECT version || ' ' || dirty FROM kuberewind.schema_migrations"))
			require.Equal(t, int64(7), one[int64](t, conn, "SELECT seq FROM kuberewind.heads"))
		})
	}
}

// The old build may still migrate when this build checks the schema. Its migration ends while this one waits for the
// lock.
func TestAMigrationOfADevelopmentBuildThatEndsMeanwhileIsRefused(t *testing.T) {
	url := newDatabase(t)
	holder := connect(t, url)
	lock, err := database.GenerateAdvisoryLockId(holder.Config().Database, migrations.Schema, "schema_migrations")
	require.NoError(t, err)
	run(t, holder, "SELECT pg_advisory_lock($1)", lock)
	up := start(t.Context(), url)
	eventually(t, connect(t, url), `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'advisory')`)
	run(t, holder, "CREATE FUNCTION kuberewind.schema_version() RETURNS integer LANGUAGE sql STABLE PARALLEL SAFE RETURN 1")
	run(t, holder, "SELECT pg_advisory_unlock($1)", lock)
	require.ErrorIs(t, up.Wait(), migrations.ErrUnreleased)
	require.Equal(t, 1, one[int](t, holder, "SELECT kuberewind.schema_version()"))
	require.NotContains(t, objectsOf(t, holder), "heads")
}
