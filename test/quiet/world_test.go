package quiet_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/kuberewind/kuberewind/internal/controlplane"
	"github.com/kuberewind/kuberewind/internal/pgtest"
	"github.com/kuberewind/kuberewind/internal/recordertest"
)

// recorderUser is whose requests are counted.
const recorderUser = "recorder"

// world is a cluster and its record.
type world struct {
	plane    *controlplane.ControlPlane
	client   dynamic.Interface
	database string
	dataDir  string
}

func newWorld(t *testing.T, args ...string) *world {
	t.Helper()
	w := &world{database: pgtest.New(t, nil).URL(), dataDir: t.TempDir()}
	w.plane = controlplane.ForTest(t, controlplane.Options{APIServer: controlplane.APIServerOptions{
		Audit: true, AuditUsers: []string{recorderUser},
		Args: append([]string{"--max-requests-inflight=2000", "--max-mutating-requests-inflight=1000"}, args...),
	}, Users: []controlplane.User{{Name: recorderUser, Groups: []string{"system:masters"}}}})
	config := w.plane.Config()
	config.QPS, config.Burst, config.WarningHandler = 1000, 1000, rest.NoWarnings{}
	var err error
	w.client, err = dynamic.NewForConfig(config)
	require.NoError(t, err)
	return w
}

// record starts a recorder, and returns when it follows all streams.
func (w *world) record(t *testing.T) *recordertest.Process {
	t.Helper()
	kubeconfig, err := w.plane.APIServer.Kubeconfig(recorderUser)
	require.NoError(t, err)
	p := recordertest.Start(t, "--kubeconfig", kubeconfig, "--database", w.database, "--data-dir", w.dataDir, "--listen", "127.0.0.1:0",
		"--log-level", "debug")
	p.AwaitReady(t)
	return p
}

// gaps are those on record that are no first list.
func (w *world) gaps(t *testing.T) []string {
	t.Helper()
	db, err := pgx.Connect(t.Context(), w.database)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close(context.WithoutCancel(t.Context()))) }()
	rows, err := db.Query(t.Context(), `SELECT concat_ws(' ', resource, cause, coalesce(outcome, 'open'), from_rv, to_rv) FROM kuberewind.gaps
		WHERE cause <> 'first_list' AND outcome IS DISTINCT FROM 'resumed'`)
	require.NoError(t, err)
	found, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	return found
}

// requests are those of the recorder between two moments, by what they ask for.
func (w *world) requests(t *testing.T, from, to time.Time) (all int, of map[string]int) {
	t.Helper()
	requests, err := w.plane.APIServer.Requests()
	require.NoError(t, err)
	of = map[string]int{}
	for _, r := range requests {
		if r.User != recorderUser || r.Received.Before(from) || r.Received.After(to) {
			continue
		}
		all++
		of[kindOf(r)]++
	}
	return all, of
}

func kindOf(r controlplane.Request) string {
	switch {
	case r.Verb == "list" && strings.Contains(r.URI, "fieldSelector"):
		return "reads of one key"
	case r.Verb == "list" && strings.Contains(r.URI, "resourceVersionMatch=Exact"), r.Verb == "list" && strings.Contains(r.URI, "continue="):
		return "exact lists and pages"
	case r.Verb == "list" && strings.Contains(r.URI+"&", "limit=1&"):
		return "lists of one object"
	case r.Resource == "":
		return "documents"
	}
	return r.Verb
}

func (w *world) create(t *testing.T, gvr schema.GroupVersionResource, o *unstructured.Unstructured) {
	t.Helper()
	recordertest.Eventually(t.Context(), t, o.GetName(), func() bool {
		_, err := w.in(gvr, o.GetNamespace()).Create(t.Context(), o, metav1.CreateOptions{})
		return err == nil || apierrors.IsAlreadyExists(err)
	})
}

func (w *world) in(gvr schema.GroupVersionResource, namespace string) dynamic.ResourceInterface {
	if namespace == "" {
		return w.client.Resource(gvr)
	}
	return w.client.Resource(gvr).Namespace(namespace)
}

func event(name string) *unstructured.Unstructured {
	return object("v1", "Event", "default", name, map[string]any{
		"reason": "Tested", "message": strings.Repeat("an event ", 20), "type": "Normal",
		"involvedObject": map[string]any{"kind": "Pod", "namespace": "default", "name": name},
	})
}

func object(apiVersion, kind, namespace, name string, body map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	for key, value := range body {
		o.Object[key] = value
	}
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	o.SetName(name)
	o.SetNamespace(namespace)
	return o
}

// elapse lets time pass while the cluster is left alone.
func elapse(t *testing.T, d time.Duration) {
	t.Helper()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.Context().Done():
		t.Fatal(fmt.Errorf("the test was ended: %w", t.Context().Err()))
	}
}
