package who_test

import (
	"flag"
	"fmt"
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kuberewind/kuberewind/hack/scene/play"
	"github.com/kuberewind/kuberewind/internal/controlplane"
	"github.com/kuberewind/kuberewind/internal/pgtest"
	"github.com/kuberewind/kuberewind/internal/recordertest"
	"github.com/kuberewind/kuberewind/internal/scene"
)

var (
	live = flag.Bool("live", false, "judge a recorder of a whole control plane, which takes minutes (make who)")
	pace = flag.Float64("pace", 8, "how many seconds of the scene pass in one second")
	kept = flag.String("audit", "", "keep the audit log in this file")
)

// A world is a whole control plane, and its record.
type world struct {
	plane    *controlplane.ControlPlane
	player   *play.Player
	database *pgtest.Database
	dataDir  string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	var users []controlplane.User
	for _, name := range scene.Users() {
		users = append(users, controlplane.User{Name: name, Groups: []string{"system:masters"}})
	}
	audit := controlplane.APIServerOptions{Audit: true, AuditWrites: true, AuditSecrets: true}
	plane := controlplane.ForTest(t, controlplane.Options{APIServer: audit, Users: users})
	_, err := plane.StartWorkloads(t.Context(), controlplane.WorkloadOptions{Nodes: scene.Nodes, Stages: scene.Stages})
	require.NoError(t, err)
	return &world{plane: plane, player: &play.Player{Plane: plane, Pace: *pace, Log: os.Stderr}, database: pgtest.New(t, nil), dataDir: t.TempDir()}
}

// record starts a recorder, and returns when it follows all streams.
func (w *world) record(t *testing.T) *recordertest.Process {
	t.Helper()
	kubeconfig, err := w.plane.Kubeconfig()
	require.NoError(t, err)
	p := recordertest.Start(t, "--kubeconfig", kubeconfig, "--database", w.database.URL(), "--data-dir", w.dataDir, "--listen", "127.0.0.1:0")
	p.AwaitReady(t)
	return p
}

// end ends a recorder when it has recorded all that was written until now.
func (w *world) end(t *testing.T, p *recordertest.Process) {
	t.Helper()
	marker := configMap("marker", nil)
	marker.GenerateName, marker.Name = "marker-", ""
	client := w.client(t, scene.Bob, "marker/v1")
	marker, err := client.CoreV1().ConfigMaps("default").Create(t.Context(), marker, metav1.CreateOptions{})
	require.NoError(t, err)
	db := w.database.Connect(t)
	recordertest.Eventually(t.Context(), t, "the last write is on record", func() bool {
		var found bool
		require.NoError(t, db.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM kuberewind.deltas WHERE uid = $1)`, string(marker.UID)).Scan(&found))
		return found
	})
	p.Terminate(t)
}

// client writes as a user. Its field manager is the agent up to the first slash.
func (w *world) client(t *testing.T, user, agent string) *kubernetes.Clientset {
	t.Helper()
	config, err := w.plane.APIServer.Config(user)
	require.NoError(t, err)
	config.UserAgent = agent
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	return client
}

func TestARecorderOfAWholeControlPlaneNamesNoWrongManager(t *testing.T) {
	if !*live {
		t.Skip("a run of minutes, not a test: make who")
	}
	w := newWorld(t)
	recorder := w.record(t)
	require.NoError(t, w.player.Story(t.Context()))
	w.traps(t, "live")
	w.end(t, recorder)
	w.traps(t, "away")
	recorder = w.record(t)
	w.traps(t, "again")
	w.end(t, recorder)

	audit, err := os.Open(w.plane.APIServer.AuditLog())
	require.NoError(t, err)
	defer func() { require.NoError(t, audit.Close()) }()
	if *kept != "" {
		keep(t, audit)
	}
	v := requireJudged(t, audit, deltas(t.Context(), t, w.database.Connect(t)))
	require.Empty(t, v.NotJudged)
}

func keep(t *testing.T, audit *os.File) {
	t.Helper()
	file, err := os.Create(*kept)
	require.NoError(t, err)
	_, err = io.Copy(file, audit)
	require.NoError(t, err)
	require.NoError(t, file.Close())
	_, err = audit.Seek(0, io.SeekStart)
	require.NoError(t, err)
	fmt.Fprintln(os.Stderr, "the audit log is in", *kept)
}
