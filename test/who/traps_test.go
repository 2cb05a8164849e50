package who_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/kuberewind/kuberewind/internal/recordertest"
	"github.com/kuberewind/kuberewind/internal/scene"
)

// A stage is a namespace with traps: writes whose managedFields show less, or something else, than a reader may expect.
type stage struct {
	*world
	t         *testing.T
	namespace string
}

func (w *world) traps(t *testing.T, namespace string) {
	t.Helper()
	s := stage{w, t, namespace}
	s.kubectl("", "create namespace "+namespace)
	s.made("maker", "put-back", map[string]string{"a": "1", "b": "1"}) // seconds before it is put back
	for _, trap := range []struct {
		what string
		lay  func()
	}{
		{"evictions right after a status write", s.evictions},
		{"replaces from stale files", s.stale},
		{"an object with twelve managers", s.twelve},
		{"first applies without managedFields", s.firstApply},
		{"resets of managedFields", s.resets},
		{"a file that is put back right after a reset", s.resetAndPutBack},
		{"client-side apply, then server-side", s.migration},
		{"objects without fields", s.fieldless},
		{"writers that own a field together", s.together},
		{"a file whose owner has given up since", s.putBack},
		{"four managers at one object", s.contest},
		{"three managers at one Deployment", s.scales},
	} {
		fmt.Fprintf(s.player.Log, "%s: %s\n", namespace, trap.what)
		trap.lay()
	}
}

func (s stage) kubectl(input, line string) {
	s.t.Helper()
	require.NoError(s.t, s.player.Kubectl(s.t.Context(), scene.Bob, input, strings.Fields(line)))
}

func (s stage) as(agent string) *kubernetes.Clientset {
	s.t.Helper()
	return s.client(s.t, scene.Bob, agent+"/v1")
}

func (s stage) configMaps(agent string) corev1client.ConfigMapInterface {
	return s.as(agent).CoreV1().ConfigMaps(s.namespace)
}

func configMap(name string, values map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Name: name}, Data: values}
}

// made makes a ConfigMap.
func (s stage) made(agent, name string, values map[string]string) {
	s.t.Helper()
	_, err := s.configMaps(agent).Create(s.t.Context(), configMap(name, values), metav1.CreateOptions{})
	require.NoError(s.t, err)
}

// patched merges a patch into a ConfigMap.
func (s stage) patched(agent, name, patch string) {
	s.t.Helper()
	_, err := s.configMaps(agent).Patch(s.t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	require.NoError(s.t, err)
}

// applied applies values on the server's side.
func (s stage) applied(manager, name string, values map[string]string) {
	s.t.Helper()
	object := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name}}
	if values != nil {
		object["data"] = values
	}
	text, err := json.Marshal(object)
	require.NoError(s.t, err)
	force := true
	_, err = s.configMaps("applier").Patch(s.t.Context(), name, types.ApplyPatchType, text, metav1.PatchOptions{FieldManager: manager, Force: &force})
	require.NoError(s.t, err)
}

// file is a ConfigMap as it is now, managedFields included, to be put back whatever it will be then.
func (s stage) file(name string) *corev1.ConfigMap {
	s.t.Helper()
	now, err := s.configMaps("reader").Get(s.t.Context(), name, metav1.GetOptions{})
	require.NoError(s.t, err)
	now.TypeMeta, now.ResourceVersion = metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ""
	return now
}

func (s stage) replaced(file *corev1.ConfigMap) {
	s.t.Helper()
	text, err := json.Marshal(file)
	require.NoError(s.t, err)
	s.kubectl(string(text), "replace -f -")
}

// evictions are of Pods whose status was written in that second, some by a writer of the condition that an eviction sets.
func (s stage) evictions() {
	pods := s.as("deployer").CoreV1().Pods(s.namespace)
	for i := range 8 {
		grace, name := int64(1), fmt.Sprint("evicted-", i)
		_, err := pods.Create(s.t.Context(), &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       corev1.PodSpec{NodeName: "node-000", TerminationGracePeriodSeconds: &grace, Containers: []corev1.Container{{Name: "app", Image: "app:1"}}},
		}, metav1.CreateOptions{})
		require.NoError(s.t, err)
		recordertest.Eventually(s.t.Context(), s.t, "the Pod runs", func() bool {
			pod, err := pods.Get(s.t.Context(), name, metav1.GetOptions{})
			require.NoError(s.t, err)
			return pod.Status.Phase == corev1.PodRunning
		})
		status := `{"status":{"message":"busy"}}`
		if i%2 == 1 {
			status = `{"status":{"conditions":[{"type":"DisruptionTarget","status":"True","reason":"TerminationByKubelet","message":"bye","lastTransitionTime":"2026-01-02T03:04:05Z"}]}}`
		}
		_, err = s.as("kubelet").CoreV1().Pods(s.namespace).Patch(s.t.Context(), name, types.StrategicMergePatchType, []byte(status), metav1.PatchOptions{}, "status")
		require.NoError(s.t, err)
		eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.namespace}}
		require.NoError(s.t, s.as("drainer").PolicyV1().Evictions(s.namespace).Evict(s.t.Context(), eviction))
	}
}

func (s stage) stale() {
	s.made("maker", "stale", map[string]string{"a": "1", "b": "1"})
	file := s.file("stale")
	s.patched("editor", "stale", `{"data":{"a":"2"},"metadata":{"labels":{"x":"1"}}}`)
	s.replaced(file)
	later := s.file("stale")
	s.patched("labeller", "stale", `{"metadata":{"labels":{"y":"1"}}}`)
	s.patched("editor", "stale", `{"data":{"b":"3","c":"1"}}`)
	s.replaced(later)
	s.replaced(file)
}

// twelve has more managers than the server keeps apart.
func (s stage) twelve() {
	s.made("maker", "twelve", map[string]string{"k": "0"})
	for round := range 3 {
		for i := range 12 {
			value := fmt.Sprintf("%q", fmt.Sprint(round))
			if round == 2 {
				value = "null"
			}
			patch := fmt.Sprintf(`{"data":{"k%d":%s}}`, i, value)
			_, err := s.configMaps("twelve").Patch(s.t.Context(), "twelve", types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: fmt.Sprint("m", i)})
			require.NoError(s.t, err)
		}
	}
}

const reset = `{"metadata":{"managedFields":[{}]}}`

func (s stage) firstApply() {
	const manifest = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"NAME","namespace":"NAMESPACE"},"data":{"a":"2","b":"1"}}`
	for name, how := range map[string]string{"first-server": "apply --server-side --force-conflicts -f -", "first-client": "apply -f -"} {
		s.made("maker", name, map[string]string{"a": "1", "c": "1"})
		s.patched("resetter", name, reset)
		s.kubectl(strings.NewReplacer("NAMESPACE", s.namespace, "NAME", name).Replace(manifest), how)
		s.patched("editor", name, `{"data":{"c":null}}`)
	}
}

func (s stage) resets() {
	s.made("maker", "reset", map[string]string{"a": "1"})
	s.patched("labeller", "reset", `{"metadata":{"labels":{"x":"1"}}}`)
	s.patched("resetter", "reset", `{"metadata":{"managedFields":[{}],"labels":{"x":null}},"data":{"a":"2"}}`)
	s.patched("editor", "reset", `{"data":{"a":"3"}}`)
	s.patched("labeller", "reset", `{"metadata":{"labels":{"x":"1"}}}`)
	s.patched("resetter", "reset", reset)
	s.patched("remover", "reset", `{"metadata":{"labels":{"x":null}}}`)
}

// migration is what kubectl does when a user goes over to server-side apply.
func (s stage) migration() {
	const manifest = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"migrated","namespace":"NAMESPACE"},"data":{"a":"VALUE"}}`
	for i, how := range []string{"apply -f -", "apply -f -", "apply --server-side -f -", "apply --server-side -f -"} {
		s.kubectl(strings.NewReplacer("NAMESPACE", s.namespace, "VALUE", fmt.Sprint(i/2)).Replace(manifest), how)
	}
}

func (s stage) fieldless() {
	s.kubectl("", "create configmap fieldless -n "+s.namespace)
	s.patched("finalizer", "fieldless", `{"metadata":{"finalizers":["example.com/hold"]}}`)
	s.kubectl("", "delete configmap fieldless --wait=false -n "+s.namespace)
	s.patched("finalizer", "fieldless", `{"metadata":{"finalizers":null}}`)
}

// together has one value applied by two managers, and given up by one.
func (s stage) together() {
	s.applied("one", "together", map[string]string{"a": "1", "b": "1"})
	s.applied("two", "together", map[string]string{"a": "1"})
	s.applied("one", "together", map[string]string{"b": "1"})
	s.applied("two", "together", map[string]string{"a": "2"})
	s.applied("two", "together", map[string]string{"b": "2"})
}

// putBack replaces by a file whose managedFields have an owner that gave up since. Nothing that is left is newer.
func (s stage) putBack() {
	s.applied("owner", "put-back", map[string]string{"a": "2"})
	s.applied("second", "put-back", map[string]string{"a": "2"})
	file := s.file("put-back")
	s.applied("owner", "put-back", nil)
	delete(file.Data, "b")
	s.replaced(file)
}

func (s stage) resetAndPutBack() {
	s.made("maker", "reset-put-back", map[string]string{"a": "1"})
	s.patched("editor", "reset-put-back", `{"data":{"b":"1"}}`)
	file := s.file("reset-put-back")
	s.patched("resetter", "reset-put-back", reset)
	s.replaced(file)
}

// contest has managers write one object at random, many times a second.
func (s stage) contest() {
	random := rand.New(rand.NewPCG(1, 2)) // the same each time
	s.made("maker", "contest", map[string]string{"k0": "0", "k1": "0", "k2": "0"})
	file := s.file("contest")
	for i := range 300 {
		agent, key := fmt.Sprint("c", random.IntN(4)), fmt.Sprint("k", random.IntN(3))
		switch random.IntN(8) {
		case 0, 1, 2:
			s.patched(agent, "contest", fmt.Sprintf(`{"data":{%q:"%d"}}`, key, i))
		case 3:
			s.patched(agent, "contest", fmt.Sprintf(`{"data":{%q:null}}`, key))
		case 4:
			s.applied(agent, "contest", map[string]string{key: fmt.Sprint(i)})
		case 5:
			now := s.file("contest")
			now.Data = map[string]string{key: fmt.Sprint(i), "k0": now.Data["k0"]}
			_, err := s.configMaps(agent).Update(s.t.Context(), now, metav1.UpdateOptions{})
			require.NoError(s.t, err)
		case 6:
			file = s.file("contest")
		case 7:
			_, err := s.configMaps(agent).Update(s.t.Context(), file, metav1.UpdateOptions{})
			require.NoError(s.t, err)
		}
	}
}

// scales has managers write the number of replicas, some by the subresource.
func (s stage) scales() {
	random := rand.New(rand.NewPCG(1, 2)) // the same each time
	s.kubectl("", "create deployment scales --image=app:1 --replicas=0 -n "+s.namespace)
	for i := range 60 {
		agent, replicas := fmt.Sprint("s", random.IntN(3)), random.Int32N(3)
		deployments := s.as(agent).AppsV1().Deployments(s.namespace)
		patch := func(text string, subresources ...string) {
			_, err := deployments.Patch(s.t.Context(), "scales", types.MergePatchType, []byte(text), metav1.PatchOptions{}, subresources...)
			require.NoError(s.t, err)
		}
		switch random.IntN(5) {
		case 0, 1:
			// As an autoscaler does. Without a resource version, a request that changes nothing looks as if it had written.
			scale, err := deployments.GetScale(s.t.Context(), "scales", metav1.GetOptions{})
			require.NoError(s.t, err)
			scale.Spec.Replicas = replicas
			if _, err = deployments.UpdateScale(s.t.Context(), "scales", scale, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
				require.NoError(s.t, err)
			}
		case 2:
			patch(fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas))
		case 3:
			patch(fmt.Sprintf(`{"metadata":{"annotations":{"n":"%d"}}}`, i))
		case 4:
			patch(`{"metadata":{"annotations":{"n":null}}}`)
		}
	}
}
