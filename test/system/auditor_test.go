package system_test

import (
	"context"
	"strconv"
	"testing"

	"github.com/golang-migrate/migrate/v4/database"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/internal/pgtest"
	"github.com/kuberewind/kuberewind/migrations"
)

// TestAnAuditorThatHoldsEveryAdvisoryLockHoldsUpNoRecorder: the locks that the auditor can see while a recorder works. It also
// takes those of migrations and roles, whose keys it can compute. The recorder takes none.
func TestAnAuditorThatHoldsEveryAdvisoryLockHoldsUpNoRecorder(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, nil)
	w := lentWorld(t)
	w.database = db.URL()
	first := w.recordReady(t)
	w.connect(t)

	auditor := newAuditor(t, db)
	keys := append(auditor.visible(t), auditor.computed(t, db.Name())...)
	first.Terminate(t)
	auditor.lock(t, keys)

	second := w.recordReady(t)
	w.act(t).create(configMaps, object("v1", "ConfigMap", "default", "seen", nil))
	eventually(t.Context(), t, "a delta", func() bool {
		var found bool
		require.NoError(t, w.db.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM kuberewind.deltas WHERE name = 'seen')`).Scan(&found))
		return found
	})
	require.ElementsMatch(t, keys, auditor.visible(t))
	second.Terminate(t)
}

// auditor is a session of a login that has the auditor's role and no other.
type auditor struct{ conn *pgx.Conn }

func newAuditor(t *testing.T, db *pgtest.Database) auditor {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), db.Login(t, migrations.AuditorRole))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	return auditor{conn}
}

// visible are the keys of the advisory locks in the database.
func (a auditor) visible(t *testing.T) []int64 {
	t.Helper()
	rows, err := a.conn.Query(t.Context(), `SELECT (classid::bigint << 32) | objid::bigint FROM pg_locks
		WHERE locktype = 'advisory' AND objsubid = 1 AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`)
	require.NoError(t, err)
	keys, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	require.NoError(t, err)
	return keys
}

// computed are the keys that the sources of the recorder and of golang-migrate give away.
func (a auditor) computed(t *testing.T, name string) []int64 {
	t.Helper()
	text, err := database.GenerateAdvisoryLockId(name, migrations.Schema, "schema_migrations")
	require.NoError(t, err)
	migrating, err := strconv.ParseInt(text, 10, 64)
	require.NoError(t, err)
	var roles int64
	require.NoError(t, a.conn.QueryRow(t.Context(), `SELECT hashtext('kuberewind roles')`).Scan(&roles))
	return []int64{migrating, roles}
}

// lock waits for the locks of recorders that have just ended.
func (a auditor) lock(t *testing.T, keys []int64) {
	t.Helper()
	for _, key := range keys {
		_, err := a.conn.Exec(t.Context(), `SELECT pg_advisory_lock($1)`, key)
		require.NoError(t, err)
	}
}
