package cookbook_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/discovery"

	"github.com/kuberewind/kuberewind/internal/controlplane"
	"github.com/kuberewind/kuberewind/internal/pgtest"
	"github.com/kuberewind/kuberewind/internal/recordertest"
)

// clusterName is the cluster's in the record.
const clusterName = "prod"

// unreadable is the API group that the recorder may not read, so that the record has a gap.
const unreadable = "certificates.k8s.io"

// world is a cluster and its record.
type world struct {
	t        *testing.T
	plane    *controlplane.ControlPlane
	database *pgtest.Database
	db       *pgx.Conn
	recorder *recordertest.Process // nil while none runs
	dataDir  string
	cacheDir string // of kubectl
	writes   map[ref]write
	// moments are instants of the story between two writes, by the name of the psql variable that the page has for them.
	moments map[string]time.Time
}

func newWorld(t *testing.T) *world {
	t.Helper()
	masters := []string{"system:masters"}
	w := &world{t: t, dataDir: t.TempDir(), cacheDir: t.TempDir(), writes: map[ref]write{}, moments: map[string]time.Time{}}
	w.plane = controlplane.ForTest(t, controlplane.Options{
		// Events go while the test still runs; they are what etcd keeps for an hour by default.
		APIServer: controlplane.APIServerOptions{Args: []string{"--event-ttl=" + eventTTL.String()}},
		Users:     []controlplane.User{{Name: "alice", Groups: masters}, {Name: "bob", Groups: masters}, {Name: "recorder"}},
	})
	w.database = pgtest.New(t, nil)
	w.db = w.database.Connect(t)
	return w
}

// eventTTL is short, but longer than the recorder takes to see an Event.
const eventTTL = 8 * time.Second

func (w *world) record() {
	w.t.Helper()
	kubeconfig, err := w.plane.APIServer.Kubeconfig("recorder")
	require.NoError(w.t, err)
	w.recorder = recordertest.Start(w.t, "--kubeconfig", kubeconfig, "--database", w.database.URL(), "--data-dir", w.dataDir,
		"--listen", "127.0.0.1:0", "--cluster-name", clusterName, "--exclude", "leases.coordination.k8s.io")
	w.recorder.AwaitReady(w.t)
}

func (w *world) stopRecording() {
	w.t.Helper()
	w.recorder.Terminate(w.t)
	w.recorder = nil
}

// mayRead lets the recorder read everything but one group.
func (w *world) mayRead(admin *actor) {
	w.t.Helper()
	client, err := discovery.NewDiscoveryClientForConfig(w.plane.Config())
	require.NoError(w.t, err)
	found, err := client.ServerGroups()
	require.NoError(w.t, err)
	groups := []string{"example.com"}
	for _, group := range found.Groups {
		if group.Name != unreadable {
			groups = append(groups, group.Name)
		}
	}
	admin.create(clusterRoles, `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: kuberewind-recorder}
rules:
- apiGroups: `+asJSON(w.t, groups)+`
  resources: ["*"]
  verbs: [get, list, watch]
- nonResourceURLs: [/api, /api/*, /apis, /apis/*, /openapi/*, /version]
  verbs: [get]`)
	admin.create(clusterRoleBindings, `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: kuberewind-recorder}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: kuberewind-recorder}
subjects: [{kind: User, name: recorder, apiGroup: rbac.authorization.k8s.io}]`)
}

// moment names an instant after everything before it and before everything after it. All earlier writes are on record, and took
// longer than the millisecond that is cut off.
func (w *world) moment(name string) {
	w.moments[name] = time.Now().UTC().Truncate(time.Millisecond)
}

// awaitEvents returns when the server has forgotten every Event, and that is on record.
func (w *world) awaitEvents() {
	w.t.Helper()
	w.await("every Event to have expired", `SELECT count(*) > 0 AND bool_and(deleted) FROM kuberewind.objects WHERE resource = 'events'`)
}

// value runs a query of one value as the owner.
func value[T any](w *world, sql string, args ...any) T {
	w.t.Helper()
	rows, err := w.db.Query(w.t.Context(), sql, args...)
	require.NoError(w.t, err)
	found, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[T])
	require.NoError(w.t, err, sql)
	return found
}
