package api_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kuberewind/kuberewind/internal/controlplane/objects"
)

// A subject is an object that is changed again and again, by merge patches with a number.
type subject struct {
	kind            schema.GroupVersionKind
	namespace, name string
	patches         []string
	status          string // patch of the status, if it has one
}

func core(kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Version: "v1", Kind: kind}
}

const tiers = `{"metadata":{"labels":{"tier":"%[2]s"}}}`

var subjects = []subject{
	{kind: core("ConfigMap"), namespace: "shop", name: "settings", patches: []string{tiers, `{"data":{"n":"%[1]d"}}`}},
	{kind: core("ConfigMap"), namespace: "shop-2", name: "settings", patches: []string{tiers, `{"data":{"n":"%[1]d"}}`}},
	{kind: core("Pod"), namespace: "shop", name: "web-1", patches: []string{tiers}, status: `{"status":{"phase":"%[3]s"}}`},
	{kind: core("Pod"), namespace: "shop-2", name: "web-1", patches: []string{tiers}, status: `{"status":{"phase":"%[3]s"}}`},
	{kind: core("Secret"), namespace: "shop", name: "token", patches: []string{tiers, `{"stringData":{"n":"%[1]d"}}`}},
	{kind: core("Node"), name: "worker-1", patches: []string{tiers, `{"spec":{"unschedulable":%[4]t}}`}},
	{kind: core("Service"), namespace: "shop", name: "web", patches: []string{tiers}},
	{kind: core("Event"), namespace: "shop", name: "web-2.1", patches: []string{tiers, `{"count":%[1]d}`}},
	{kind: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, namespace: "shop", name: "web",
		patches: []string{tiers, `{"spec":{"replicas":%[1]d}}`}, status: `{"status":{"readyReplicas":1,"replicas":3,"observedGeneration":%[1]d}}`},
	{kind: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "ReplicaSet"}, namespace: "shop", name: "web-6d4f", patches: []string{tiers}},
	{kind: schema.GroupVersionKind{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"}, namespace: "shop", name: "leader", patches: []string{tiers}},
	{kind: schema.GroupVersionKind{Group: "discovery.k8s.io", Version: "v1", Kind: "EndpointSlice"}, namespace: "shop", name: "web-abc", patches: []string{tiers}},
	{kind: schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "Role"}, namespace: "shop", name: "reader:odd", patches: []string{tiers}},
	{kind: schema.GroupVersionKind{Group: "autoscaling", Version: "v2", Kind: "HorizontalPodAutoscaler"}, namespace: "shop", name: "web", patches: []string{tiers}},
	{kind: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}, namespace: "shop", name: "big",
		patches: []string{tiers, `{"spec":{"size":"%[2]s","replicas":%[1]d}}`}, status: `{"status":{"ready":%[4]t}}`},
	{kind: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gadget"}, name: "crank", patches: []string{tiers, `{"spec":{"size":"%[2]s","weight":%[1]d}}`}},
}

// A writer changes objects, and makes and deletes copies of them, one write after the other.
type writer struct {
	t      *testing.T
	maker  *objects.Maker
	random *rand.Rand
	copies map[int][]string // names, by index of the subject
	made   int
}

func newWriter(t *testing.T, maker *objects.Maker) *writer {
	return &writer{t: t, maker: maker, random: rand.New(rand.NewPCG(*seed, 0)), copies: make(map[int][]string)}
}

func (w *writer) write(n int) {
	w.t.Helper()
	for i := range n {
		at := w.random.IntN(len(subjects))
		switch w.random.IntN(6) {
		case 0:
			w.copy(at)
		case 1:
			w.remove(at)
		default:
			w.change(&subjects[at], i)
		}
	}
}

func (w *writer) change(s *subject, n int) {
	w.t.Helper()
	patch, subresources := s.patches[w.random.IntN(len(s.patches))], []string(nil)
	if s.status != "" && w.random.IntN(2) == 0 {
		patch, subresources = s.status, []string{"status"}
	}
	phase := []string{"Pending", "Running", "Succeeded"}[n%3]
	text := fmt.Appendf(nil, patch, n%7, []string{"front", "back", "large"}[n%3], phase, n%2 == 0)
	_, err := w.maker.Resource(s.kind, s.namespace).Patch(w.t.Context(), s.name, types.MergePatchType, text, metav1.PatchOptions{FieldManager: "writer"}, subresources...)
	require.NoError(w.t, err, "%s %s: %s", s.kind.Kind, s.name, text)
}

// copy makes another object like the subject.
func (w *writer) copy(at int) {
	w.t.Helper()
	s := &subjects[at]
	client := w.maker.Resource(s.kind, s.namespace)
	object, err := client.Get(w.t.Context(), s.name, metav1.GetOptions{})
	require.NoError(w.t, err)
	w.made++
	name := fmt.Sprintf("%s-copy-%d", s.name, w.made)
	object.SetName(name)
	object.SetUID("")
	object.SetResourceVersion("")
	object.SetManagedFields(nil)
	for _, given := range [][]string{{"status"}, {"spec", "clusterIP"}, {"spec", "clusterIPs"}} {
		unstructured.RemoveNestedField(object.Object, given...)
	}
	_, err = client.Create(w.t.Context(), object, metav1.CreateOptions{FieldManager: "writer"})
	require.NoError(w.t, err, "%s %s", s.kind.Kind, name)
	w.copies[at] = append(w.copies[at], name)
}

// remove deletes the oldest copy of a subject, if there is one.
func (w *writer) remove(at int) {
	w.t.Helper()
	if len(w.copies[at]) == 0 {
		return
	}
	s, now := &subjects[at], int64(0)
	require.NoError(w.t, w.maker.Resource(s.kind, s.namespace).Delete(w.t.Context(), w.copies[at][0], metav1.DeleteOptions{GracePeriodSeconds: &now}))
	w.copies[at] = w.copies[at][1:]
}
