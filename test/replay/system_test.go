package replay_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"

	"github.com/kuberewind/kuberewind/internal/controlplane"
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
	objects    dynamic.Interface
	mapper     *restmapper.DeferredDiscoveryRESTMapper
}

func startCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{t: t, plane: controlplane.ForTest(t, controlplane.Options{})}
	var err error
	c.kubeconfig, err = c.plane.Kubeconfig()
	require.NoError(t, err)
	config := c.plane.Config()
	config.QPS = -1
	c.objects, err = dynamic.NewForConfig(config)
	require.NoError(t, err)
	client, err := discovery.NewDiscoveryClientForConfig(config)
	require.NoError(t, err)
	c.mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client))
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

// apply creates the objects of a file, and gives those with a status theirs.
func (c *cluster) apply(path string) []*unstructured.Unstructured {
	c.t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(c.t, err)
	now := time.Now()
	for placeholder, ago := range map[string]time.Duration{"@-1h": time.Hour, "@-10m": 10 * time.Minute, "@-3m": 3 * time.Minute, "@-1m": time.Minute} {
		text = bytes.ReplaceAll(text, []byte(placeholder), []byte(now.Add(-ago).UTC().Format("2006-01-02T15:04:05.000000Z07:00")))
	}
	var made []*unstructured.Unstructured
	for _, doc := range strings.Split(string(text), "\n---\n") {
		object := &unstructured.Unstructured{}
		require.NoError(c.t, yaml.Unmarshal([]byte(doc), &object.Object))
		made = append(made, c.create(object))
	}
	return made
}

func (c *cluster) create(object *unstructured.Unstructured) *unstructured.Unstructured {
	c.t.Helper()
	client := c.client(object.GroupVersionKind(), object.GetNamespace())
	status, hasStatus := object.Object["status"]
	created, err := client.Create(c.t.Context(), object, metav1.CreateOptions{FieldManager: "tester"})
	require.NoError(c.t, err, "%s %s", object.GetKind(), object.GetName())
	if hasStatus {
		created.Object["status"] = status
		created, err = client.UpdateStatus(c.t.Context(), created, metav1.UpdateOptions{FieldManager: "tester"})
		require.NoError(c.t, err, "%s %s", object.GetKind(), object.GetName())
	}
	if object.GetKind() == "CustomResourceDefinition" {
		c.eventually("the definition is established", func() bool {
			got, err := client.Get(c.t.Context(), object.GetName(), metav1.GetOptions{})
			require.NoError(c.t, err)
			conditions, _, _ := unstructured.NestedSlice(got.Object, "status", "conditions")
			for _, each := range conditions {
				if condition := each.(map[string]any); condition["type"] == "Established" && condition["status"] == "True" {
					created = got
					return true
				}
			}
			return false
		})
		c.mapper.Reset()
	}
	return created
}

func (c *cluster) client(kind schema.GroupVersionKind, namespace string) dynamic.ResourceInterface {
	c.t.Helper()
	var mapping *meta.RESTMapping
	c.eventually(kind.String()+" is served", func() (ok bool) {
		var err error
		if mapping, err = c.mapper.RESTMapping(kind.GroupKind(), kind.Version); err != nil {
			c.mapper.Reset()
		}
		return err == nil
	})
	if namespace == "" {
		return c.objects.Resource(mapping.Resource)
	}
	return c.objects.Resource(mapping.Resource).Namespace(namespace)
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
