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

// record starts a recorder on a database of its own. It ends with the test.
func (c *cluster) record() {
	c.t.Helper()
	c.database = pgtest.New(c.t, nil)
	c.pool = c.database.Pool(c.t)
	recordertest.Start(c.t, "--kubeconfig", c.kubeconfig, "--database", c.database.URL(), "--data-dir", c.t.TempDir(),
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
