package quiet_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kuberewind/kuberewind/internal/recordertest"
)

var (
	definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	eventsGVR   = schema.GroupVersionResource{Version: "v1", Resource: "events"}
)

// written are the resources under load, by how often each is chosen: Events are a third, the custom resource a ninth.
var written = []schema.GroupVersionResource{
	eventsGVR, eventsGVR, eventsGVR,
	{Version: "v1", Resource: "configmaps"}, {Version: "v1", Resource: "configmaps"}, {Version: "v1", Resource: "secrets"},
	{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}, {Version: "v1", Resource: "serviceaccounts"}, custom("busy"),
}

var kinds = map[string]string{"events": "Event", "configmaps": "ConfigMap", "secrets": "Secret", "leases": "Lease", "serviceaccounts": "ServiceAccount", "busies": "Busy"}

const (
	writers      = 10
	writesSecond = 100
)

func custom(singular string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "quiet.kuberewind.dev", Version: "v1", Resource: plural(singular)}
}

func plural(singular string) string {
	if singular == "busy" {
		return "busies"
	}
	return singular + "s"
}

// define makes a custom resource, and returns when it is served.
func (w *world) define(t *testing.T, singular, kind string) {
	t.Helper()
	gvr := custom(singular)
	w.create(t, definitions, object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", gvr.Resource+"."+gvr.Group, map[string]any{"spec": map[string]any{
		"group": gvr.Group, "scope": "Namespaced",
		"names": map[string]any{"plural": gvr.Resource, "singular": singular, "kind": kind, "listKind": kind + "List"},
		"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true,
			"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}},
	}}))
	recordertest.Eventually(t.Context(), t, gvr.Resource+" to be served", func() bool {
		_, err := w.in(gvr, "default").Create(t.Context(), object(gvr.GroupVersion().String(), kind, "default", "dry", nil), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err == nil
	})
}

// undefine takes it away again.
func (w *world) undefine(t *testing.T, singular string) {
	t.Helper()
	gvr := custom(singular)
	recordertest.Eventually(t.Context(), t, gvr.Resource+" to be gone", func() bool {
		err := w.in(definitions, "").Delete(t.Context(), gvr.Resource+"."+gvr.Group, metav1.DeleteOptions{})
		return apierrors.IsNotFound(err)
	})
}

// load writes until the returned function is called. It minds no failure: the server goes away.
func (w *world) load(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for id := range writers {
		all.Go(func() {
			pace := time.NewTicker(writers * time.Second / writesSecond)
			defer pace.Stop()
			for {
				select {
				case <-ctx.Done():
					return
				case <-pace.C:
					w.write(ctx, id)
				}
			}
		})
	}
	stop = func() { cancel(); all.Wait() }
	t.Cleanup(stop)
	return stop
}

func (w *world) write(ctx context.Context, id int) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	gvr := written[rand.IntN(len(written))]
	in, name := w.in(gvr, "default"), fmt.Sprintf("writer-%d-%d", id, rand.IntN(8))
	turn := fmt.Sprintf(`{"metadata":{"labels":{"turn":"%d"}}}`, rand.Uint32())
	_, err := in.Patch(ctx, name, types.MergePatchType, []byte(turn), metav1.PatchOptions{})
	switch {
	case apierrors.IsNotFound(err):
		_, _ = in.Create(ctx, body(gvr, name), metav1.CreateOptions{}) // the server may be away
	case err == nil && rand.IntN(4) == 0:
		_ = in.Delete(ctx, name, metav1.DeleteOptions{}) // likewise
	}
}

func body(gvr schema.GroupVersionResource, name string) *unstructured.Unstructured {
	if gvr == eventsGVR {
		return event(name)
	}
	return object(gvr.GroupVersion().String(), kinds[gvr.Resource], "default", name, nil)
}
