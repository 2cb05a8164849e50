package migrations_test

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/internal/pgtest"
	"github.com/kuberewind/kuberewind/migrations"
)

// maker returns a login that may make schemas in the database, and has no other right.
func maker(t *testing.T, db *pgtest.Database) (url, name string, conn *pgx.Conn) {
	t.Helper()
	url = db.Login(t)
	conn = connect(t, url)
	name = one[string](t, conn, "SELECT current_user::text")
	db.Exec(t, "GRANT CREATE ON DATABASE "+db.Name()+" TO "+name)
	return url, name, conn
}

// trapped makes a table write into public.caught the role under which its code ran.
func trapped(t *testing.T, conn querier, schema, table string) {
	t.Helper()
	run(t, conn, fmt.Sprintf(`CREATE FUNCTION %[1]s.trap() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO public.caught VALUES (current_user); RETURN NEW; END';
		CREATE TRIGGER trap BEFORE INSERT ON %[2]s FOR EACH ROW EXECUTE FUNCTION %[1]s.trap()`, schema, table))
}

func TestASchemaThatAnotherLoginMadeBeforehandIsRefused(t *testing.T) {
	db := pgtest.New(t, nil)
	admin := db.Connect(t)
	run(t, admin, "CREATE TABLE public.caught (name text); GRANT ALL ON public.caught TO PUBLIC")
	_, mallory, theirs := maker(t, db)
	run(t, theirs, "CREATE SCHEMA kuberewind; GRANT ALL ON SCHEMA kuberewind TO PUBLIC")
	run(t, theirs, "CREATE TABLE kuberewind.schema_migrations (version bigint NOT NULL PRIMARY KEY, dirty boolean NOT NULL); GRANT ALL ON kuberewind.schema_migrations TO PUBLIC")
	trapped(t, theirs, "kuberewind", "kuberewind.schema_migrations")
	recorder, name, _ := maker(t, db)
	for user, url := range map[string]string{name: recorder, one[string](t, admin, "SELECT current_user::text"): db.URL()} {
		before := objectsOf(t, admin)
		err := migrations.Up(t.Context(), url, discard())
		require.ErrorIs(t, err, migrations.ErrNotOwner, user)
		require.ErrorContains(t, err, fmt.Sprintf("it belongs to %s, and this login is %s; migrate as %[1]s. Drop the schema kuberewind only if you are sure that it holds no record", mallory, user))
		require.Equal(t, before, objectsOf(t, admin))
	}
	require.Empty(t, column[string](t, admin, "SELECT name FROM public.caught"))
}

// A superuser's rights are worth more than the version of a schema.
func TestASuperuserRunsNoCodeOfAnotherRolesSchema(t *testing.T) {
	db := pgtest.New(t, nil)
	admin := db.Connect(t)
	run(t, admin, "CREATE TABLE public.caught (name text); GRANT ALL ON public.caught TO PUBLIC")
	_, mallory, theirs := maker(t, db)
	run(t, theirs, "CREATE SCHEMA kuberewind")
	run(t, theirs, fmt.Sprintf("CREATE FUNCTION kuberewind.schema_version() RETURNS integer LANGUAGE sql AS 'INSERT INTO public.caught VALUES (current_user); SELECT %d'", migrations.Latest()))
	for name, err := range map[string]error{
		"Up":   migrations.Up(t.Context(), db.URL(), discard()),
		"Down": migrations.Down(t.Context(), db.URL(), true),
	} {
		require.ErrorIs(t, err, migrations.ErrNotOwner, name)
		require.ErrorContains(t, err, "it belongs to "+mallory, name)
	}
	require.Empty(t, column[string](t, admin, "SELECT name FROM public.caught"))
}

func TestAnObjectOfAnotherRoleInTheSchemaIsAnErrorThatNamesIt(t *testing.T) {
	db := pgtest.New(t, nil)
	admin := db.Connect(t)
	_, mallory, theirs := maker(t, db)
	run(t, admin, "CREATE SCHEMA kuberewind; GRANT CREATE, USAGE ON SCHEMA kuberewind TO PUBLIC")
	run(t, theirs, "CREATE TABLE kuberewind.schema_migrations (version bigint NOT NULL PRIMARY KEY, dirty boolean NOT NULL)")
	err := migrations.Up(t.Context(), db.URL(), discard())
	require.ErrorIs(t, err, migrations.ErrNotOwner)
	require.ErrorContains(t, err, "it holds schema_migrations of "+mallory)
	run(t, admin, "DROP TABLE kuberewind.schema_migrations")
	require.NoError(t, migrations.Up(t.Context(), db.URL(), discard()))
}

func TestATableOfAnotherMakerIsNotAttachedAsADay(t *testing.T) {
	for name, test := range map[string]struct {
		theirs, ours string // the SQL of the other login, and of the owner
		says         string
	}{
		"a table of another role": {theirs: "CREATE TABLE kuberewind.deltas_p20991231 (LIKE kuberewind.deltas_data INCLUDING ALL)", says: "it belongs to "},
		"a table with a trigger": {ours: `CREATE TABLE kuberewind.deltas_p20991231 (LIKE kuberewind.deltas_data INCLUDING ALL);
			CREATE TRIGGER trap BEFORE INSERT ON kuberewind.deltas_p20991231 FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()`, says: "it has a trigger"},
		"a table with a rule": {ours: `CREATE TABLE kuberewind.batches_p20991231 (LIKE kuberewind.batches INCLUDING ALL);
			CREATE RULE trap AS ON INSERT TO kuberewind.batches_p20991231 DO ALSO NOTHING`, says: "it has a rule"},
	} {
		t.Run(name, func(t *testing.T) {
			db := pgtest.New(t, migrate)
			admin := db.Connect(t)
			_, mallory, theirs := maker(t, db)
			run(t, admin, "GRANT CREATE, USAGE ON SCHEMA kuberewind TO "+mallory+"; GRANT SELECT ON kuberewind.deltas_data TO "+mallory)
			run(t, theirs, test.theirs)
			run(t, admin, test.ours)
			require.ErrorContains(t, ensureDay(t, admin, "2099-12-31"), test.says)
			require.NotContains(t, partitions(t, admin), "deltas_p20991231")
			require.NotContains(t, partitions(t, admin), "batches_p20991231")
			require.NoError(t, ensureDay(t, admin, "2099-12-30"), "other days are made")
		})
	}
}

func ensureDay(t *testing.T, conn *pgx.Conn, day string) error {
	t.Helper()
	_, err := conn.Exec(t.Context(), "SELECT kuberewind.ensure_day($1::text::date)", day)
	return err
}

func TestOnlyTheOwnerMayCreateObjectsInTheSchema(t *testing.T) {
	db := pgtest.New(t, migrate)
	admin := db.Connect(t)
	_, mallory, theirs := maker(t, db)
	run(t, admin, "GRANT CREATE, USAGE ON SCHEMA kuberewind TO PUBLIC; GRANT CREATE ON SCHEMA kuberewind TO "+mallory+" WITH GRANT OPTION")
	_, err := migrations.Roles(t.Context(), admin)
	require.NoError(t, err)
	_, err = theirs.Exec(t.Context(), "CREATE TABLE kuberewind.deltas_p20991231 (a int)")
	require.ErrorContains(t, err, "permission denied for schema kuberewind")
	require.Equal(t, 0, one[int](t, admin, "SELECT count(*)::int FROM pg_namespace n, aclexplode(n.nspacl) g WHERE nspname = 'kuberewind' AND privilege_type = 'CREATE' AND grantee <> nspowner"))
}
