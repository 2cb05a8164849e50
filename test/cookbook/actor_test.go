package cookbook_test

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/kuberewind/kuberewind/internal/recordertest"
)

// ref names an object on the server.
type ref struct {
	gvr             schema.GroupVersionResource
	namespace, name string
}

// actor is a user who changes the cluster: a controller under its field manager, or a person with kubectl.
type actor struct {
	*world
	t       *testing.T
	manager string
	client  dynamic.Interface
	// kubeconfig is a person's; controllers have none.
	kubeconfig string
}

func (w *world) controller(t *testing.T, manager string) *actor {
	t.Helper()
	client, err := dynamic.NewForConfig(w.plane.Config())
	require.NoError(t, err)
	return &actor{world: w, t: t, manager: manager, client: client}
}

func (w *world) person(t *testing.T, user string) *actor {
	t.Helper()
	a := w.controller(t, "")
	var err error
	a.kubeconfig, err = w.plane.APIServer.Kubeconfig(user)
	require.NoError(t, err)
	return a
}

func (a *actor) in(r ref) dynamic.ResourceInterface {
	if r.namespace == "" {
		return a.client.Resource(r.gvr)
	}
	return a.client.Resource(r.gvr).Namespace(r.namespace)
}

// object reads YAML.
func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte(text), &o.Object), text)
	return o
}

// create makes an object from YAML and returns its UID.
func (a *actor) create(gvr schema.GroupVersionResource, text string) types.UID {
	a.t.Helper()
	o := object(a.t, text)
	r := ref{gvr, o.GetNamespace(), o.GetName()}
	created, err := a.in(r).Create(a.t.Context(), o, metav1.CreateOptions{FieldManager: a.manager})
	require.NoError(a.t, err, text)
	a.wrote(r, created)
	return created.GetUID()
}

// merge patches an object, or a subresource of it, with YAML.
func (a *actor) merge(r ref, text string, subresources ...string) {
	a.t.Helper()
	a.awaitTurn(r, a.manager)
	body, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(a.t, err)
	_, err = a.in(r).Patch(a.t.Context(), r.name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: a.manager}, subresources...)
	require.NoError(a.t, err, "%s of %s: %s", subresources, r.name, text)
	a.wrote(r, a.get(r))
}

func (a *actor) get(r ref) *unstructured.Unstructured {
	a.t.Helper()
	o, err := a.in(r).Get(a.t.Context(), r.name, metav1.GetOptions{})
	require.NoError(a.t, err)
	return o
}

// bind assigns a Pod to a Node as the scheduler does.
func (a *actor) bind(pod ref, node string) {
	a.t.Helper()
	binding := object(a.t, `{apiVersion: v1, kind: Binding, target: {apiVersion: v1, kind: Node, name: `+node+`}}`)
	binding.SetName(pod.name)
	binding.SetNamespace(pod.namespace)
	_, err := a.in(pod).Create(a.t.Context(), binding, metav1.CreateOptions{FieldManager: a.manager}, "binding")
	require.NoError(a.t, err)
	a.wrote(pod, a.get(pod))
}

// delete removes an object at once.
func (a *actor) delete(r ref) {
	a.t.Helper()
	uid := a.get(r).GetUID()
	now := int64(0)
	require.NoError(a.t, a.in(r).Delete(a.t.Context(), r.name, metav1.DeleteOptions{GracePeriodSeconds: &now}))
	a.awaitDeleted(uid)
}

// mark asks for a deletion that something holds up: a finalizer, or the grace period of a Pod.
func (a *actor) mark(r ref) {
	a.t.Helper()
	require.NoError(a.t, a.in(r).Delete(a.t.Context(), r.name, metav1.DeleteOptions{}))
	a.wrote(r, a.get(r))
}

// kubectl runs it as the person; what it touches is named, so that it can be awaited.
func (a *actor) kubectl(stdin string, touched []ref, args ...string) {
	a.t.Helper()
	for _, r := range touched {
		a.awaitTurn(r, strings.Join(args, " "))
	}
	cmd := exec.CommandContext(a.t.Context(), a.plane.Kubectl(), append([]string{"--kubeconfig", a.kubeconfig, "--cache-dir", a.cacheDir}, args...)...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	require.NoError(a.t, err, "kubectl %s: %s", strings.Join(args, " "), out)
	for _, r := range touched {
		a.wrote(r, a.get(r))
	}
}

// write is the last that was made to an object.
type write struct {
	by     string
	second int64
}

// awaitTurn waits for the next second if another actor has changed the object in this one. The times of managedFields are whole
// seconds, so they do not show which of two managers in one second was the last.
func (a *actor) awaitTurn(r ref, by string) {
	a.t.Helper()
	last, ok := a.writes[r]
	if ok && last.by != by && last.second >= time.Now().Unix() {
		select {
		case <-time.After(time.Until(time.Unix(last.second+1, 0))):
		case <-a.t.Context().Done():
		}
	}
	a.writes[r] = write{by: by}
}

// wrote returns when the write is on record, so that the next write has a higher seq, whatever its resource.
func (a *actor) wrote(r ref, o *unstructured.Unstructured) {
	a.t.Helper()
	last := a.writes[r]
	if last.by == "" {
		last.by = a.manager
	}
	last.second = time.Now().Unix()
	a.writes[r] = last
	if a.recorder == nil {
		return
	}
	a.await("version "+o.GetResourceVersion()+" of "+o.GetName(),
		`SELECT EXISTS (SELECT FROM kuberewind.deltas WHERE uid = $1 AND resource_version = $2)`, string(o.GetUID()), o.GetResourceVersion())
}

func (a *actor) awaitDeleted(uid types.UID) {
	a.t.Helper()
	if a.recorder != nil {
		a.await("the end of "+string(uid), `SELECT EXISTS (SELECT FROM kuberewind.objects WHERE uid = $1 AND deleted)`, string(uid))
	}
}

// await returns when a question is answered with true.
func (w *world) await(what, sql string, args ...any) {
	w.t.Helper()
	recordertest.Eventually(w.t.Context(), w.t, what, func() (met bool) {
		return w.db.QueryRow(w.t.Context(), sql, args...).Scan(&met) == nil && met
	})
}

func asJSON(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	require.NoError(t, err)
	return string(text)
}
