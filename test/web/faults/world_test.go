package faults_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/kuberewind/kuberewind/internal/controlplane"
	"github.com/kuberewind/kuberewind/internal/pgtest"
	"github.com/kuberewind/kuberewind/internal/recordertest"
)

// A world is a whole control plane with fifty workloads, and its record.
type world struct {
	plane    *controlplane.ControlPlane
	client   dynamic.Interface
	database *pgtest.Database
	dataDir  string
	recorder *recordertest.Process
	random   *rand.Rand
	all      []*workload
	writes   int // of the churn
}

func newWorld(t *testing.T, random *rand.Rand, database *pgtest.Database) *world {
	t.Helper()
	w := &world{random: random, all: drawn(random), database: database, dataDir: t.TempDir()}
	w.plane = controlplane.ForTest(t, controlplane.Options{})
	_, err := w.plane.StartWorkloads(t.Context(), controlplane.WorkloadOptions{Nodes: len(namespaces), Stages: stages})
	require.NoError(t, err)
	config := w.plane.Config()
	config.QPS, config.WarningHandler = -1, rest.NoWarnings{}
	w.client, err = dynamic.NewForConfig(config)
	require.NoError(t, err)
	w.record(t)
	for i, namespace := range namespaces {
		w.create(t, w.all[i*10].fill(namespaceObjects))
		require.Equal(t, namespace, w.all[i*10].namespace)
	}
	w.create(t, definition)
	for _, each := range w.all {
		w.create(t, each.fill(workloadObjects))
	}
	recordertest.Eventually(t.Context(), t, "a Pod of each workload runs", func() bool { return w.running(t) == len(w.all) })
	return w
}

// record starts a recorder, and returns when it follows all streams.
func (w *world) record(t *testing.T) {
	t.Helper()
	kubeconfig, err := w.plane.Kubeconfig()
	require.NoError(t, err)
	w.recorder = recordertest.Start(t, "--kubeconfig", kubeconfig, "--database", w.database.URL(), "--data-dir", w.dataDir, "--listen", "127.0.0.1:0")
	w.recorder.AwaitReady(t)
}

// create makes objects. A definition is made a moment before its resource is served.
func (w *world) create(t *testing.T, text string) {
	t.Helper()
	for _, document := range strings.Split(text, "\n---\n") {
		o := &unstructured.Unstructured{}
		require.NoError(t, yaml.Unmarshal([]byte(document), &o.Object))
		plural, _ := meta.UnsafeGuessKindToResource(o.GroupVersionKind())
		recordertest.Eventually(t.Context(), t, o.GetKind()+" "+o.GetName(), func() bool {
			_, err := w.client.Resource(plural).Namespace(o.GetNamespace()).Create(t.Context(), o, metav1.CreateOptions{FieldManager: "setup"})
			return err == nil
		})
	}
}

// do writes, and gives what was written. A write is tried until the server takes it: it may be on its way back.
func (w *world) do(t *testing.T, manager string, what write) *unstructured.Unstructured {
	t.Helper()
	var written *unstructured.Unstructured
	recordertest.Eventually(t.Context(), t, fmt.Sprintf("%s %s: %s", what.resource.Resource, what.name, what.patch), func() (done bool) {
		var err error
		written, err = w.client.Resource(what.resource).Namespace(what.namespace).Patch(t.Context(), what.name, what.how, []byte(what.patch), metav1.PatchOptions{FieldManager: manager})
		return err == nil
	})
	return written
}

// A pod is what a person sees of a Pod.
type pod struct {
	app, waits    string
	unschedulable bool
	ready         bool
}

// pods are those of a namespace, or of all.
func (w *world) pods(t *testing.T, namespace string) (found []pod) {
	t.Helper()
	list, err := w.client.Resource(pods).Namespace(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		return nil // The server may be on its way back: it is asked again.
	}
	for i := range list.Items {
		var p corev1.Pod
		require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, &p))
		one := pod{app: p.Labels["app"]}
		for _, c := range p.Status.Conditions {
			one.ready = one.ready || c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
			one.unschedulable = one.unschedulable || c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonUnschedulable
		}
		for _, c := range p.Status.ContainerStatuses {
			if c.State.Waiting != nil {
				one.waits = c.State.Waiting.Reason
			}
		}
		found = append(found, one)
	}
	return found
}

// running counts the workloads that have a Pod that is ready.
func (w *world) running(t *testing.T) int {
	t.Helper()
	apps := map[string]bool{}
	for _, p := range w.pods(t, "") {
		if p.ready {
			apps[p.app] = true
		}
	}
	return len(apps)
}

// shows reports whether the fault can be seen.
func (w *world) shows(t *testing.T, f *fault, of *workload) bool {
	t.Helper()
	if f.seen != nil {
		for _, p := range w.pods(t, of.namespace) {
			if p.app == of.name && f.seen(p) {
				return true
			}
		}
		return false
	}
	return len(f.follows) == 0 || w.stuck(t, of)
}

// stuck reports whether a Deployment says that it cannot make Pods.
func (w *world) stuck(t *testing.T, of *workload) bool {
	t.Helper()
	got, err := w.client.Resource(deployments).Namespace(of.namespace).Get(t.Context(), of.name, metav1.GetOptions{})
	if err != nil {
		return false
	}
	var d appsv1.Deployment
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(got.Object, &d))
	for _, c := range d.Status.Conditions {
		if c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue {
			return true
		}
	}
	return false
}

// forget makes the server forget all that was written until now, and its caches too.
func (w *world) forget(t *testing.T) {
	t.Helper()
	at, err := w.plane.Etcd.Revision(t.Context())
	require.NoError(t, err)
	require.NoError(t, w.plane.Etcd.Compact(t.Context(), at))
	require.NoError(t, w.plane.APIServer.Restart(t.Context()))
}

// caughtUp returns when all that was written until now is on record.
func (w *world) caughtUp(t *testing.T) {
	t.Helper()
	marker := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte("{apiVersion: v1, kind: ConfigMap, metadata: {generateName: marker-, namespace: default}}"), &marker.Object))
	var made *unstructured.Unstructured
	recordertest.Eventually(t.Context(), t, "a marker is made", func() (done bool) {
		var err error
		made, err = w.client.Resource(configs).Namespace("default").Create(t.Context(), marker, metav1.CreateOptions{FieldManager: "test"})
		return err == nil
	})
	db := w.database.Connect(t)
	recordertest.Eventually(t.Context(), t, "the last write is on record", func() (found bool) {
		require.NoError(t, db.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM kuberewind.deltas WHERE uid = $1)`, string(made.GetUID())).Scan(&found))
		return found
	})
}

// complete reports whether the record has all of every resource up to a time.
func (w *world) complete(t *testing.T, upTo time.Time) (complete bool) {
	t.Helper()
	db := w.database.Connect(t)
	defer func() { require.NoError(t, db.Close(context.WithoutCancel(t.Context()))) }()
	require.NoError(t, db.QueryRow(t.Context(), `SELECT bool_and(positioned_at > $1) FROM kuberewind.streams`, upTo).Scan(&complete))
	return complete
}

// until lets time pass until something is so.
func (w *world) until(t *testing.T, what string, but *workload, is func() bool) {
	t.Helper()
	for end := time.Now().Add(recordertest.Patience); !is(); w.live(t, 300*time.Millisecond, but) {
		if time.Now().After(end) {
			t.Fatalf("not within %s: %s", recordertest.Patience, what)
		}
	}
}

// errPassed ends a stretch of time.
var errPassed = errors.New("it has passed")

// live lets a time pass, in which others work on anything but one workload.
func (w *world) live(t *testing.T, d time.Duration, but *workload) {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), d, errPassed)
	defer cancel()
	for {
		w.churn(t, but)
		pause := time.NewTimer(time.Duration(50+w.random.IntN(250)) * time.Millisecond)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return
		}
	}
}

// churn is one harmless write: to an object of a workload that is not the one, which may be of the same kind as a fault. At the one, only annotations change.
func (w *world) churn(t *testing.T, but *workload) {
	t.Helper()
	w.writes++
	n, of := w.writes, w.all[w.random.IntN(len(w.all))]
	if but != nil && w.random.IntN(2) == 0 { // half of it is near the fault
		at := (w.index(but) / 10) * 10
		of = w.all[at+w.random.IntN(10)]
	}
	if of == but || but != nil && of.peer == but.name {
		w.do(t, "kubectl", merge(deployments, of.namespace, of.name, fmt.Sprintf(`{"metadata":{"annotations":{"looked-at":"%d"}}}`, n)))
		return
	}
	all := []write{
		merge(deployments, of.namespace, of.name, fmt.Sprintf(`{"metadata":{"annotations":{"looked-at":"%d"}}}`, n)),
		merge(deployments, of.namespace, of.name, fmt.Sprintf(`{"spec":{"replicas":%d}}`, 1+n%2)),
		one(deployments, of.namespace, of.name, container+"/image", fmt.Sprintf("registry.example/%s:v%d", of.name, n)),
		one(deployments, of.namespace, of.name, container+"/env/1/value", fmt.Sprint(n)),
		merge(configs, of.namespace, of.settings, fmt.Sprintf(`{"data":{"level":"%d"}}`, n)),
		merge(secrets, of.namespace, of.secret, fmt.Sprintf(`{"stringData":{"password":"next-%d"}}`, n)),
		merge(services, of.namespace, of.name, fmt.Sprintf(`{"spec":{"sessionAffinity":"%s"}}`, []string{"None", "ClientIP"}[n%2])),
		one(policies, of.namespace, of.policy, "/spec/ingress/0/ports/0/port", 80+n%7),
		one(roles, of.namespace, of.role, "/rules/0/verbs/1", []string{"list", "watch"}[n%2]),
		one(paths, of.namespace, of.route, "/spec/weight", 1+n%9),
	}
	if but == nil || of.namespace != but.namespace { // of what all workloads of a namespace share
		all = append(all,
			one(quotas, of.namespace, of.quota, "/spec/hard/pods", fmt.Sprint(90+n%9)),
			merge(nodes, "", of.node, fmt.Sprintf(`{"metadata":{"labels":{"checked":"%d"}}}`, n)))
	}
	w.do(t, []string{"kubectl", "argocd", "terraform"}[w.random.IntN(3)], all[w.random.IntN(len(all))])
}

func (w *world) index(of *workload) int {
	for i, each := range w.all {
		if each == of {
			return i
		}
	}
	return 0
}
