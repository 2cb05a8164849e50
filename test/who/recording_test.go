package who_test

import (
	"bytes"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/pgtest"
	"github.com/kuberewind/kuberewind/internal/scene/record"
	"github.com/kuberewind/kuberewind/internal/scenetest"
)

// A finding of a trial is a kind of write after which the record once named a wrong writer.
type finding struct{ sentence, sql, want string }

// said gives, in the order of the record, who is named and who is a hint.
const said = `SELECT string_agg(concat_ws(' ', coalesce(manager, '-'), manager_hint || '?'), ', ' ORDER BY seq) FROM kuberewind.deltas WHERE source = 'watch' AND `

// unnamed is true if there are such deltas, and none names an actor.
const unnamed = `SELECT (count(*) > 0 AND bool_and(manager IS NULL AND manager_evidence = 'none'))::text FROM kuberewind.deltas WHERE source = 'watch' AND `

var findings = []finding{
	{"a Deleted has no name", unnamed + `type = 'Deleted'`, "true"},
	{"a label that was removed after a scale has no name", said + `name = 'web' AND patch @> '[{"op": "remove", "path": "/metadata/labels/tier"}]'`, "- kubectl-label?"},
	{"a label that was removed from a Node has no name", said + `kind = 'Node' AND patch @> '[{"op": "remove", "path": "/metadata/labels/power"}]'`, "- kubectl-label?"},
	{"a variable that was removed has no name", said + `kind = 'Deployment' AND name = 'web' AND patch::text LIKE '%"op": "remove"%LOG_LEVEL%'`, "- kubectl-set?"},
	{"a label that a JSON patch removed has no name", said + `kind = 'Deployment' AND name = 'web' AND patch::text LIKE '%"old": {"team": "shop"}%'`, "-"},
	{"a scale is named", said + `name = 'scratch' AND patch @> '[{"op": "replace", "path": "/spec/replicas"}]'`, "kubectl"},
	{"no binding has a name", unnamed + `kind = 'Pod' AND patch @> '[{"op": "add", "path": "/spec/nodeName"}]'`, "true"},
	{"no delete request has a name", unnamed + `patch @> '[{"path": "/metadata/deletionTimestamp"}]'`, "true"},
	{"no eviction has a name", unnamed + `patch::text LIKE '%EvictionByEvictionAPI%'`, "true"},
	{"a namespace that was deleted has no name", said + `kind = 'Namespace' AND patch @> '[{"op": "add", "path": "/metadata/deletionTimestamp"}]'`, "-"},
	{"uncordon has no name", said + `kind = 'Node' AND patch @> '[{"op": "remove", "path": "/spec/unschedulable"}]'`, "- kubectl?"},
	{"a taint that was removed has no name", said + `kind = 'Node' AND patch::text LIKE '%"op": "remove"%maint%'`, "- kubectl-taint?"},
	{"a first version without managedFields has no name", unnamed + `type = 'Added' AND object #> '{metadata,managedFields}' IS NULL`, "true"},
}

func TestTheCommittedRecordingNamesNoWrongManager(t *testing.T) {
	database := pgtest.New(t, scenetest.Record)
	db := database.Connect(t)
	t.Run("names no wrong manager", func(t *testing.T) {
		audit, err := zstd.NewReader(bytes.NewReader(record.Audit))
		require.NoError(t, err)
		defer audit.Close()
		requireJudged(t, audit, deltas(t.Context(), t, db))
	})
	for _, f := range findings {
		t.Run(f.sentence, func(t *testing.T) {
			var got *string
			require.NoError(t, db.QueryRow(t.Context(), f.sql).Scan(&got))
			require.NotNil(t, got, "the recording has no such delta")
			require.Equal(t, f.want, *got)
		})
	}
	t.Run("a Deployment that was scaled, set and deleted was last written by its controller", func(t *testing.T) {
		require.Equal(t, "kube-controller-manager/status", lastWriter(t, database, db, "Deployment", "scratch"))
	})
}

// lastWriter is what a log says beside a Deleted.
func lastWriter(t *testing.T, database *pgtest.Database, db *pgx.Conn, kind, name string) string {
	t.Helper()
	var seq, object int64
	require.NoError(t, db.QueryRow(t.Context(), `
		SELECT seq, record_deltas.object_id FROM kuberewind.record_deltas JOIN kuberewind.deltas USING (seq) WHERE deltas.type = 'Deleted' AND kind = $1 AND name = $2`,
		kind, name).Scan(&seq, &object))
	rec, err := history.Open(t.Context(), database.URL(), history.Options{})
	require.NoError(t, err)
	defer rec.Close()
	w, found, err := rec.Lookup().LastWriter(t.Context(), object, seq)
	require.NoError(t, err)
	require.True(t, found)
	return w.Manager + "/" + w.Subresource
}
