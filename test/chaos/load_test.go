package chaos_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/kuberewind/kuberewind/internal/recordertest"
)

var (
	configMaps          = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	secrets             = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	pods                = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	events              = schema.GroupVersionResource{Version: "v1", Resource: "events"}
	leases              = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
	deployments         = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	crds                = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	widgets             = schema.GroupVersionResource{Group: "example.kuberewind.dev", Version: "v1", Resource: "widgets"}
	clusterRoles        = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"}
	clusterRoleBindings = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"}
)

// kindOf are the kinds that the load writes: cached ones, uncached ones (Events), and custom resources.
var kindOf = map[schema.GroupVersionResource]string{
	configMaps: "ConfigMap", secrets: "Secret", pods: "Pod", events: "Event", leases: "Lease", deployments: "Deployment", widgets: "Widget",
}

// often weights the kinds: a kind is chosen as often as it is listed.
var often = []schema.GroupVersionResource{configMaps, configMaps, secrets, pods, pods, events, events, leases, leases, deployments, widgets, widgets}

const (
	// writers is the number of clients that write at the same time.
	writers = 6
	// names is the number of object names of a writer for each kind. It is small, so that objects are deleted and created again.
	names = 8
	// bigBytes is the size of a big object; every bigOne-th write of a ConfigMap makes one.
	bigBytes, bigOne = 300 << 10, 100
)

// load writes to the cluster. It ignores failed writes: the oracle reads from etcd whether they were done.
type load struct {
	client        dynamic.Interface
	seed          uint64
	tried, failed atomic.Int64
	wait          sync.WaitGroup
	turn          sync.RWMutex // held for reading while a writer writes
}

func newLoad(client dynamic.Interface, seed uint64) *load { return &load{client: client, seed: seed} }

// run writes until ctx ends.
func (l *load) run(ctx context.Context) {
	for id := range writers {
		l.wait.Go(func() {
			random := rand.New(rand.NewPCG(l.seed, uint64(id)))
			pace := time.NewTicker(writers * time.Second / time.Duration(*rate))
			defer pace.Stop()
			for {
				select {
				case <-ctx.Done():
					return
				case <-pace.C:
					l.take(ctx, random, id)
				}
			}
		})
	}
}

// pause waits until no writer writes. Call the returned function to go on.
func (l *load) pause() (resume func()) {
	l.turn.Lock()
	return l.turn.Unlock
}

// take creates, changes or deletes one object. It has a timeout, so that a hanging server does not block the writer.
func (l *load) take(ctx context.Context, random *rand.Rand, id int) {
	l.turn.RLock()
	defer l.turn.RUnlock()
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	gvr := often[random.IntN(len(often))]
	name := fmt.Sprintf("writer-%d-%d", id, random.IntN(names))
	err := l.write(ctx, random, gvr, name)
	l.tried.Add(1)
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsAlreadyExists(err) {
		l.failed.Add(1)
	}
}

func (l *load) write(ctx context.Context, random *rand.Rand, gvr schema.GroupVersionResource, name string) error {
	in := l.client.Resource(gvr).Namespace("default")
	body, subresources := change(random, gvr)
	_, err := in.Patch(ctx, name, types.MergePatchType, []byte(body), metav1.PatchOptions{}, subresources...)
	switch {
	case apierrors.IsNotFound(err):
		_, err = in.Create(ctx, newObject(gvr.GroupVersion().String(), kindOf[gvr], "default", name, bodyOf(gvr, name)), metav1.CreateOptions{})
	case err == nil && random.IntN(4) == 0:
		if err = in.Delete(ctx, name, noGrace()); err == nil && random.IntN(2) == 0 {
			_, err = in.Create(ctx, newObject(gvr.GroupVersion().String(), kindOf[gvr], "default", name, bodyOf(gvr, name)), metav1.CreateOptions{})
		}
	}
	return err
}

// change returns a merge patch, sometimes of the status.
func change(random *rand.Rand, gvr schema.GroupVersionResource) (body string, subresources []string) {
	text := []string{"plain", "ünïcödé 日本 😀", "a/b~0~1", "<b>&amp;</b>", "12345678901234567890"}[random.IntN(5)]
	switch {
	case gvr == pods && random.IntN(2) == 0:
		return fmt.Sprintf(`{"status":{"podIP":"10.1.%d.%d","phase":"Running"}}`, random.IntN(250), random.IntN(250)), []string{"status"}
	case gvr == deployments && random.IntN(2) == 0:
		return fmt.Sprintf(`{"status":{"observedGeneration":%d}}`, random.IntN(1000)), []string{"status"}
	case gvr == configMaps && random.IntN(bigOne) == 0:
		return fmt.Sprintf(`{"data":{"big":%q}}`, strings.Repeat(fmt.Sprintf("%08x", random.Uint32()), bigBytes/8)), nil
	case gvr == configMaps:
		return fmt.Sprintf(`{"data":{"key-%d":%q,"big":null}}`, random.IntN(5), text), nil
	case gvr == secrets:
		return fmt.Sprintf(`{"stringData":{"password":"%08x"}}`, random.Uint32()), nil
	default:
		return fmt.Sprintf(`{"metadata":{"labels":{"turn":"%d"},"annotations":{"example.dev/note":%q}}}`, random.Uint32(), text), nil
	}
}

// bodyOf returns the smallest body of a kind that the server accepts.
func bodyOf(gvr schema.GroupVersionResource, name string) map[string]any {
	labels := map[string]any{"app": name}
	podSpec := map[string]any{"restartPolicy": "Never", "containers": []any{map[string]any{"name": "main", "image": "registry.example/app:1.0"}}}
	switch gvr {
	case secrets:
		return map[string]any{"stringData": map[string]any{"user": name}}
	case pods:
		return map[string]any{"spec": podSpec}
	case deployments:
		template := map[string]any{"metadata": map[string]any{"labels": labels}, "spec": map[string]any{"containers": podSpec["containers"]}}
		return map[string]any{"spec": map[string]any{"selector": map[string]any{"matchLabels": labels}, "template": template}}
	case leases:
		return map[string]any{"spec": map[string]any{"holderIdentity": name, "leaseDurationSeconds": int64(15)}}
	case events:
		return map[string]any{"reason": "Tested", "message": "an event that expires", "type": "Normal",
			"involvedObject": map[string]any{"kind": "Pod", "namespace": "default", "name": name}}
	case widgets:
		return map[string]any{"spec": map[string]any{"size": int64(9007199254740993)}}
	}
	return nil
}

func newObject(apiVersion, kind, namespace, name string, body map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	for key, value := range body {
		o.Object[key] = value
	}
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	o.SetName(name)
	if namespace != "" {
		o.SetNamespace(namespace)
	}
	return o
}

// mustCreate retries while the server starts.
func (w *world) mustCreate(t *testing.T, gvr schema.GroupVersionResource, o *unstructured.Unstructured) {
	t.Helper()
	var err error
	recordertest.Eventually(t.Context(), t, gvr.Resource+" "+o.GetName(), func() bool {
		_, err = w.client.Resource(gvr).Create(t.Context(), o, metav1.CreateOptions{})
		return err == nil || apierrors.IsAlreadyExists(err)
	})
}

func (w *world) mustDelete(t *testing.T, gvr schema.GroupVersionResource, name string) {
	t.Helper()
	recordertest.Eventually(t.Context(), t, gvr.Resource+" "+name+" to be gone", func() bool {
		err := w.client.Resource(gvr).Delete(t.Context(), name, noGrace())
		return apierrors.IsNotFound(err)
	})
}

// makeWidgets creates the definition of widgets, with another schema each time, and waits until the server serves them.
func (w *world) makeWidgets(t *testing.T, edition int) {
	t.Helper()
	properties, err := json.Marshal(map[string]any{"spec": map[string]any{"type": "object", "properties": map[string]any{
		"size":                            map[string]any{"type": "integer", "format": "int64"},
		fmt.Sprintf("edition%d", edition): map[string]any{"type": "string", "default": "of this schema"},
	}}})
	require.NoError(t, err)
	var schema map[string]any
	require.NoError(t, json.Unmarshal(properties, &schema))
	w.mustCreate(t, crds, newObject("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", widgetsDefinition, map[string]any{"spec": map[string]any{
		"group": widgets.Group, "scope": "Namespaced",
		"names": map[string]any{"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
		"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true,
			"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "properties": schema}}}},
	}}))
	// The server may still answer lists while it removes a definition.
	recordertest.Eventually(t.Context(), t, "widgets to be served", func() bool {
		dry := newObject(widgets.GroupVersion().String(), "Widget", "default", "dry-run", nil)
		_, err := w.client.Resource(widgets).Namespace("default").Create(t.Context(), dry, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err == nil
	})
}

const widgetsDefinition = "widgets.example.kuberewind.dev"
