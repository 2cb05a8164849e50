package replay_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kuberewind/kuberewind/internal/controlplane"
	"github.com/kuberewind/kuberewind/internal/controlplane/objects"
	"github.com/kuberewind/kuberewind/internal/pgtest"
	"github.com/kuberewind/kuberewind/internal/recordertest"
)

// A cluster is a control plane that is being recorded.
type cluster struct {
	t          *testing.T
	plane      *controlplane.ControlPlane
	kubeconfig string
	dataDir    string // of the recorder
	database   *pgtest.Database
	pool       *pgxpool.Pool
	maker      *objects.Maker
}

func startCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{t: t, plane: controlplane.ForTest(t, controlplane.Options{})}
	var err error
	c.kubeconfig, err = c.plane.Kubeconfig()
	require.NoError(t, err)
	c.maker = objects.New(t, c.plane.Config())
	return c
}

// in is the same cluster for a subtest.
func (c *cluster) in(t *testing.T) *cluster {
	of := *c
	of.t, of.maker = t, objects.New(t, c.plane.Config())
	return &of
}

// TestTheCommandsAnswerForARecordedShop is one cluster, because each takes seconds of CPU time. The test that changes the cluster comes last.
// No name has a comma: it would be in paths, where kubectl takes it for the end of one.
func TestTheCommandsAnswerForARecordedShop(t *testing.T) {
	c := startCluster(t)
	c.record()
	c.awaitRecorded(c.maker.Apply(objects.Shop)...)
	t.Run("kubectl's eyes see no difference", func(t *testing.T) { kubectlsEyes(t, c.in(t)) })
	t.Run("a snapshot holds what the server served and can be applied elsewhere", func(t *testing.T) { aSnapshot(t, c.in(t)) })
	t.Run("what the server takes reads back and steers no terminal", func(t *testing.T) { whatTheServerTakes(t, c.in(t)) })
	t.Run("the record is proved equal to the cluster and what was tampered with is found", func(t *testing.T) { theRecordIsProved(t, c.in(t)) })
	t.Run("sessions of one cluster of two", func(t *testing.T) { sessionsOfTwo(t, c.in(t)) }) // makes the second, so it is the last
}

// record starts a recorder on a database of its own. It ends with the test.
func (c *cluster) record() {
	c.t.Helper()
	c.database = pgtest.New(c.t, pgtest.EmptyRecord)
	c.pool = c.database.Pool(c.t)
	c.dataDir = c.t.TempDir()
	recordertest.Start(c.t, "--kubeconfig", c.kubeconfig, "--database", c.database.URL(), "--data-dir", c.dataDir,
		"--cluster-name", "test", "--listen", "127.0.0.1:0")
}

// output is what a program did.
type output struct {
	stdout, stderr string
	code           int
}

func (c *cluster) kubectl(args ...string) output {
	c.t.Helper()
	return c.run(c.plane.Kubectl(), args...)
}

func (c *cluster) replay(args ...string) output {
	c.t.Helper()
	return c.run(recordertest.Program("replay"), args...)
}

func (c *cluster) run(program string, args ...string) output {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), recordertest.Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + c.t.TempDir(), "KUBECONFIG=" + c.kubeconfig}
	if c.database != nil {
		cmd.Env = append(cmd.Env, "REPLAY_DATABASE="+c.database.URL())
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		require.NoError(c.t, err)
	}
	return output{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// awaitRecorded returns when these versions are in the record.
func (c *cluster) awaitRecorded(objects ...*unstructured.Unstructured) {
	c.t.Helper()
	for _, o := range objects {
		c.eventually("recorded: "+o.GetKind()+" "+o.GetName(), func() bool {
			var found bool
			err := c.pool.QueryRow(c.t.Context(), `SELECT EXISTS (SELECT FROM kuberewind.deltas WHERE uid = $1 AND resource_version = $2)`,
				string(o.GetUID()), o.GetResourceVersion()).Scan(&found)
			return err == nil && found // Before the recorder has migrated, there is no such view.
		})
	}
}

func (c *cluster) eventually(what string, condition func() bool) {
	c.t.Helper()
	recordertest.Eventually(c.t.Context(), c.t, what, condition)
}
