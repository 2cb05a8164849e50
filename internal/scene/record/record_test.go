package record_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/bench/data"
	"github.com/kuberewind/kuberewind/internal/pgtest"
	"github.com/kuberewind/kuberewind/internal/scene"
	"github.com/kuberewind/kuberewind/internal/scene/record"
)

// another is the folder of a run of hack/scene, which must pass the same tests.
var another = flag.String("recording", "", "test the recording and the audit log of this folder, and not those that are committed")

func TestMain(m *testing.M) { pgtest.Main(m) }

// A fact is something that the record must hold after the story.
type fact struct{ what, sql, want string }

var facts = []fact{
	{"the images of the Deployment web, with the rollback", `
		SELECT string_agg(coalesce(new #>> '{}', ''), ' ' ORDER BY seq) FROM kuberewind.changes
		WHERE kind = 'Deployment' AND namespace = 'shop' AND name = 'web' AND path = '/spec/template/spec/containers/0/image'`,
		"registry.example/web:v2-broken registry.example/web:v1 registry.example/web:v3"},
	{"who broke it", `
		SELECT manager FROM kuberewind.changes WHERE kind = 'Deployment' AND name = 'web' AND new = '"registry.example/web:v2-broken"'`, "kubectl-set"},
	{"who rolled it back", `
		SELECT manager FROM kuberewind.changes WHERE kind = 'Deployment' AND name = 'web' AND new = '"registry.example/web:v1"'
			AND path = '/spec/template/spec/containers/0/image'`, "kubectl"},
	{"the scale", `
		SELECT string_agg((old #>> '{}') || ' ' || (new #>> '{}'), ', ' ORDER BY seq) FROM kuberewind.changes WHERE kind = 'Deployment' AND name = 'web' AND path = '/spec/replicas'`, "3 5"},
	{"the Pods that could not start", `
		SELECT count(DISTINCT uid)::text FROM kuberewind.deltas WHERE kind = 'Pod' AND name LIKE 'web-%' AND patch::text LIKE '%ImagePullBackOff%'`, "3"},
	{"the setting that Carol edited", `
		SELECT (old #>> '{}') || ' ' || (new #>> '{}') || ' ' || manager FROM kuberewind.changes WHERE kind = 'ConfigMap' AND name = 'settings' AND path = '/data/color'`,
		"blue green kubectl-edit"},
	{"the Node that was cordoned and uncordoned", `
		SELECT string_agg(op, ' ' ORDER BY seq) FROM kuberewind.changes WHERE kind = 'Node' AND name = 'node-003' AND path = '/spec/unschedulable'`, "add remove"},
	{"the Node that was not Ready", `
		SELECT string_agg(DISTINCT name, ' ') FROM kuberewind.changes WHERE kind = 'Node' AND path ~ '^/status/conditions/' AND new::text LIKE '%KubeletNotReady%'`, "node-001"},
	{"the namespace that was deleted with its objects", `
		SELECT string_agg(kind || '/' || name, ' ' ORDER BY kind, name) FROM kuberewind.deltas
		WHERE type = 'Deleted' AND (namespace = 'legacy' OR kind = 'Namespace') AND kind IN ('Namespace', 'Deployment', 'ConfigMap') AND name IN ('legacy', 'old')`,
		"ConfigMap/old Deployment/old Namespace/legacy"},
	{"the rights that were granted and revoked", `
		SELECT string_agg(type || ' ' || name, ', ' ORDER BY seq) FROM kuberewind.deltas
		WHERE kind IN ('ClusterRoleBinding', 'RoleBinding') AND name IN ('dave-admin', 'reader') AND source = 'watch'`,
		"Added reader, Added dave-admin, Deleted dave-admin, Deleted reader"},
	{"the Job that failed, and was deleted", `
		SELECT (EXISTS (SELECT FROM kuberewind.deltas WHERE kind = 'Job' AND name = 'migrate' AND patch::text LIKE '%BackoffLimitExceeded%')
			AND EXISTS (SELECT FROM kuberewind.deltas WHERE kind = 'Job' AND name = 'migrate' AND type = 'Deleted'))::text`, "true"},
	{"the Pod that was killed", `
		SELECT count(*)::text FROM kuberewind.deltas WHERE kind = 'Pod' AND name = 'report' AND patch::text LIKE '%OOMKilled%'`, "1"},
	{"the ConfigMap that was created again under its name", `
		SELECT count(DISTINCT uid)::text FROM kuberewind.deltas WHERE kind = 'ConfigMap' AND name = 'limits'`, "2"},
	{"the scale by a controller, and the upgrade after it", `
		SELECT string_agg((old #>> '{}') || ' ' || (new #>> '{}') || ' ' || manager, ', ' ORDER BY seq)
		FROM kuberewind.changes WHERE kind = 'Deployment' AND name = 'ledger' AND path = '/spec/replicas'`, "2 3 kube-controller-manager, 3 4 Helm"},
	{"the rollout that was stuck", `
		SELECT count(*)::text FROM kuberewind.changes WHERE kind = 'Deployment' AND name = 'web' AND new::text LIKE '%ProgressDeadlineExceeded%' AND old::text NOT LIKE '%ProgressDeadlineExceeded%'`, "1"},
	{"the restarts of a Pod", `
		SELECT max((new #>> '{}')::int)::text FROM kuberewind.changes WHERE kind = 'Pod' AND name = 'report' AND path ~ '/restartCount$'`, "2"},
	{"the Secret whose value was changed", `
		SELECT count(*)::text FROM kuberewind.changes WHERE kind = 'Secret' AND name = 'login' AND path = '/data/password' AND old <> new`, "1"},
	{"the objects of the new definition", `
		SELECT string_agg(type || ' ' || name, ', ' ORDER BY seq) FROM kuberewind.deltas WHERE kind = 'Certificate'`, "Added web, Updated web"},
	{"the printed column of the definition", `
		SELECT count(*)::text FROM kuberewind.changes WHERE kind = 'CustomResourceDefinition' AND path ~ 'additionalPrinterColumns' AND new::text LIKE '%Issuer%'`, "1"},
	{"the heartbeats of each Node", `
		SELECT string_agg(DISTINCT name, ' ' ORDER BY name) FROM kuberewind.deltas WHERE kind = 'Lease' AND namespace = 'kube-node-lease' AND type = 'Updated'`,
		"node-000 node-001 node-002 node-003"},
	{"no password", `
		SELECT count(*)::text FROM kuberewind.deltas WHERE coalesce(object::text, '') || coalesce(patch::text, '') ~ 'correct-horse|battery-horse|Y29ycmVjdC1ob3JzZS|YmF0dGVyeS1ob3JzZS'`, "0"},
}

func TestTheRecordOfTheSceneHoldsTheFactsOfTheStory(t *testing.T) {
	database := pgtest.New(t, pgtest.EmptyRecord)
	set := recording(t)
	require.NoError(t, recorded(t.Context(), database.URL()))
	db := database.Connect(t)
	for _, f := range facts {
		t.Run(f.what, func(t *testing.T) {
			var got *string
			require.NoError(t, db.QueryRow(t.Context(), f.sql).Scan(&got))
			require.NotNil(t, got, "the fact is not on record")
			require.Equal(t, f.want, *got)
		})
	}
	t.Run("each event of the recording, at its time", func(t *testing.T) { requireEvents(t, db, set) })
}

func recorded(ctx context.Context, url string) error {
	if *another == "" {
		return record.Into(ctx, url)
	}
	return record.FolderInto(ctx, url, *another)
}

func recording(t *testing.T) data.Set {
	t.Helper()
	if *another == "" {
		set, err := record.Set(t.TempDir())
		require.NoError(t, err)
		return set
	}
	set, err := data.Open(filepath.Join(*another, "scene.zst"))
	require.NoError(t, err)
	return set
}

func auditLog(t *testing.T) []byte {
	t.Helper()
	if *another == "" {
		return record.Audit
	}
	log, err := os.ReadFile(filepath.Join(*another, "audit.zst"))
	require.NoError(t, err)
	return log
}

// requireEvents compares the deltas with the recording, one by one.
func requireEvents(t *testing.T, db *pgx.Conn, set data.Set) {
	t.Helper()
	rows, err := db.Query(t.Context(), `SELECT uid || ' ' || type || ' ' || resource_version, observed_at FROM kuberewind.deltas WHERE source = 'watch' ORDER BY seq`)
	require.NoError(t, err)
	defer rows.Close()
	types := map[string]string{"ADDED": "Added", "MODIFIED": "Updated", "DELETED": "Deleted"}
	for e, err := range set.Events() {
		require.NoError(t, err)
		require.True(t, rows.Next(), "the record ends before %s/%s", e.Namespace, e.Name)
		var what string
		var observed time.Time
		require.NoError(t, rows.Scan(&what, &observed))
		require.Contains(t, what, e.UID+" "+types[string(e.Type)])
		require.WithinDuration(t, e.At, observed, time.Microsecond)
	}
	require.False(t, rows.Next(), "the record has more than the recording")
	require.NoError(t, rows.Err())
}

// An audited is the part of an audit log line that the test reads.
type audited struct {
	Level, Verb, UserAgent string
	User                   struct{ Username string }
	ObjectRef              struct{ Resource string }
	RequestObject          json.RawMessage
	ResponseObject         json.RawMessage
}

func TestTheAuditLogNamesEveryActorAndKeepsNoSecret(t *testing.T) {
	plain, err := zstd.NewReader(bytes.NewReader(auditLog(t)))
	require.NoError(t, err)
	defer plain.Close()
	lines := bufio.NewScanner(plain)
	lines.Buffer(nil, 16<<20)
	actors, withFields := map[string]bool{}, 0
	for lines.Scan() {
		var event audited
		require.NoError(t, json.Unmarshal(lines.Bytes(), &event))
		actors[event.User.Username] = true
		if event.ObjectRef.Resource == "secrets" {
			require.Empty(t, event.RequestObject)
			require.Empty(t, event.ResponseObject)
		}
		if strings.Contains(string(event.ResponseObject), `"managedFields"`) {
			withFields++
		}
	}
	require.NoError(t, lines.Err())
	for _, user := range scene.Users() {
		require.True(t, actors[user], "%s did nothing", user)
	}
	require.Greater(t, withFields, 100)
}

func TestTwoRecordsOfTheSceneAreEqual(t *testing.T) {
	digests := map[string]bool{}
	for range 2 {
		database := pgtest.New(t, pgtest.EmptyRecord)
		require.NoError(t, record.Into(t.Context(), database.URL()))
		var digest string
		require.NoError(t, database.Connect(t).QueryRow(t.Context(), `SELECT md5(string_agg(d::text, E'\\n' ORDER BY seq)) FROM kuberewind.deltas d`).Scan(&digest))
		digests[digest] = true
	}
	require.Len(t, digests, 1)
}

func TestTheCommittedRecordingIsSmall(t *testing.T) {
	size := int64(0)
	files, err := os.ReadDir("testdata")
	require.NoError(t, err)
	for _, file := range files {
		info, err := file.Info()
		require.NoError(t, err)
		size += info.Size()
	}
	require.Greater(t, size, int64(len(record.Audit)))
	require.Less(t, size, int64(2<<20))
}
