package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/kuberewind/kuberewind/internal/controlplane"
)

var (
	definitionGVR = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	configMaps    = Resource{Version: "v1", Name: "configmaps", Kind: "ConfigMap", Namespaced: true}
)

// TestOnARealServer holds the tests that need a real API server, which is started once.
func TestOnARealServer(t *testing.T) {
	plane := controlplane.ForTest(t, controlplane.Options{Users: []controlplane.User{{Name: "nobody"}}})
	r := &realServer{plane: plane, client: connect(t, plane.Config(), Options{})}
	var err error
	r.dynamic, err = dynamic.NewForConfigAndClient(r.client.config, r.client.http)
	require.NoError(t, err)

	t.Run("discovery offers each resource once, in its preferred version", r.discovery)
	t.Run("the server describes itself, and the same again the next time", r.documents)
	t.Run("a list and a watch give the same object", r.listAndWatch)
	t.Run("upstream's reflector runs on a ListWatch", r.upstream)
	t.Run("the cluster is known by its system namespace", r.identity)
	t.Run("a definition's resource is announced, changed, recreated and removed", r.definition)
	t.Run("a definition made between two runs is announced with its creation", r.betweenRuns)
	t.Run("an API service that comes and goes is followed", r.apiService)
	t.Run("without the right to list definitions they are found by discovery", r.forbidden)
}

type realServer struct {
	plane   *controlplane.ControlPlane
	client  *Client
	dynamic dynamic.Interface
}

// deadline bounds the wait for an expected event, even on a busy machine.
const deadline = 5 * time.Minute

func (r *realServer) discovery(t *testing.T) {
	d, err := r.client.Discover(t.Context(), map[schema.GroupResource]string{{Group: "autoscaling", Resource: "horizontalpodautoscalers"}: "v1"})
	require.NoError(t, err)
	require.Empty(t, d.Failed)
	versions := map[string]string{}
	for _, resource := range d.Resources {
		key := resource.GroupResource().String()
		require.NotContains(t, versions, key)
		require.NotContains(t, resource.Name, "/")
		versions[key] = resource.Version
		if key == "deployments.apps" {
			require.Equal(t, Resource{Group: "apps", Version: "v1", Name: "deployments", Singular: "deployment", Kind: "Deployment", Namespaced: true,
				Verbs: resource.Verbs, ShortNames: []string{"deploy"}, Categories: []string{"all"}}, resource)
		}
	}
	require.Equal(t, "v1", versions["events"])
	require.NotContains(t, versions, "events.events.k8s.io")
	require.Equal(t, "v1", versions["horizontalpodautoscalers.autoscaling"], "the version in use is kept")
	require.Contains(t, versions, "ingresses.networking.k8s.io")
	require.Equal(t, []Cohabiting{{Resource: d.Cohabiting[0].Resource, Kept: schema.GroupResource{Resource: "events"}}}, d.Cohabiting)
	reasons := map[string]string{}
	for _, u := range d.Unwatchable {
		reasons[u.Resource.GroupResource().String()] = u.Reason
	}
	require.Contains(t, reasons["componentstatuses"], "watch")
	require.Contains(t, reasons["tokenreviews.authentication.k8s.io"], "list")

	d, err = r.client.Discover(t.Context(), nil)
	require.NoError(t, err)
	for _, resource := range d.Resources {
		if resource.Name == "horizontalpodautoscalers" {
			require.Equal(t, "v2", resource.Version)
		}
	}
}

func (r *realServer) documents(t *testing.T) {
	documents, err := r.client.Documents(t.Context(), nil)
	require.NoError(t, err)
	have, paths := map[string]string{}, []string{}
	for _, d := range documents {
		require.NotEmpty(t, d.Hash, d.Path)
		require.True(t, json.Valid(d.Body), d.Path)
		have[d.Path] = d.Hash
		paths = append(paths, d.Path)
	}
	require.IsIncreasing(t, paths)
	require.Subset(t, paths, []string{"/api", "/apis", "/version", "/openapi/v3", "/openapi/v3/api/v1", "/openapi/v3/apis/apps/v1"})
	body := func(path string) string {
		for _, d := range documents {
			if d.Path == path {
				return string(d.Body)
			}
		}
		return ""
	}
	require.Contains(t, body("/apis"), "APIGroupDiscoveryList")
	require.Contains(t, body("/version"), "gitVersion")
	require.Contains(t, body("/openapi/v3/apis/apps/v1"), "io.k8s.api.apps.v1.Deployment")

	again, err := r.client.Documents(t.Context(), have)
	require.NoError(t, err)
	require.Len(t, again, len(documents))
	for i, d := range again {
		require.Equal(t, Document{Path: documents[i].Path, Hash: documents[i].Hash}, d)
	}
}

func (r *realServer) listAndWatch(t *testing.T) {
	lw := r.client.ListWatch(configMaps, "default")
	list, err := lw.Page(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	w, err := lw.WatchWithContext(t.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion, AllowWatchBookmarks: true})
	require.NoError(t, err)
	defer w.Stop()
	maps := r.dynamic.Resource(configMaps.GroupVersion().WithResource("configmaps")).Namespace("default")
	made, err := maps.Create(t.Context(), object("v1", "ConfigMap", "made", map[string]any{"data": map[string]any{"k": "v"}}), metav1.CreateOptions{FieldManager: "tester"})
	require.NoError(t, err)

	event := <-w.ResultChan()
	require.Equal(t, watch.Added, event.Type)
	watched := event.Object.(*Object)
	require.Equal(t, "tester", watched.ManagedFields[0].Manager)
	list, err = lw.Page(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=made"})
	require.NoError(t, err)
	got, err := lw.Get(t.Context(), "default", "made")
	require.NoError(t, err)
	for _, o := range []*Object{list.Items[0], got} {
		require.JSONEq(t, string(watched.JSON), string(o.JSON))
		require.Equal(t, watched.ObjectMeta, o.ObjectMeta)
		require.Equal(t, watched.TypeMeta, o.TypeMeta)
	}
	require.NoError(t, maps.Delete(t.Context(), "made", metav1.DeleteOptions{}))
	event = <-w.ResultChan()
	require.Equal(t, watch.Deleted, event.Type)
	require.Equal(t, made.GetUID(), event.Object.(*Object).UID)

	_, err = lw.Get(t.Context(), "default", "made")
	require.True(t, apierrors.IsNotFound(err), err)
}

func (r *realServer) upstream(t *testing.T) {
	maps := r.dynamic.Resource(configMaps.GroupVersion().WithResource("configmaps")).Namespace("default")
	for i := range 25 {
		_, err := maps.Create(t.Context(), object("v1", "ConfigMap", fmt.Sprintf("up-%d", i), nil), metav1.CreateOptions{})
		require.NoError(t, err)
	}
	store := &signallingStore{Store: cache.NewStore(cache.MetaNamespaceKeyFunc), changed: make(chan struct{}, 100)}
	reflector := cache.NewReflectorWithOptions(r.client.ListWatch(configMaps, "default"), &Object{}, store, cache.ReflectorOptions{})
	reflector.WatchListPageSize = 10
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { reflector.RunWithContext(ctx) })
	defer running.Wait()
	defer cancel()

	await(t, store.changed, func() bool { return len(store.ListKeys()) >= 25 })
	_, err := maps.Patch(t.Context(), "up-3", types.MergePatchType, []byte(`{"data":{"a":"b"}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	await(t, store.changed, func() bool {
		o, _, _ := store.GetByKey("default/up-3")
		return strings.Contains(string(o.(*Object).JSON), `"a":"b"`)
	})
	require.NoError(t, maps.Delete(t.Context(), "up-4", metav1.DeleteOptions{}))
	await(t, store.changed, func() bool {
		_, there, _ := store.GetByKey("default/up-4")
		return !there
	})
}

func (r *realServer) identity(t *testing.T) {
	uid, err := r.client.ClusterUID(t.Context())
	require.NoError(t, err)
	require.NotEmpty(t, uid)
	_, err = connect(t, r.config(t, "nobody"), Options{}).ClusterUID(t.Context())
	require.ErrorContains(t, err, `resources: ["namespaces"]`)
}

// Helpers follow.

func (r *realServer) follow(t *testing.T, options FollowerOptions) *following {
	return r.followWith(t, r.client, options)
}

func (r *realServer) followWith(t *testing.T, client *Client, options FollowerOptions) *following {
	t.Helper()
	f := newFollowing(t, client, options)
	f.confirm = 20 * time.Millisecond
	f.start(t)
	return f
}

// create makes a definition and waits until it is established. It returns the definition as created.
func (r *realServer) create(t *testing.T, definition *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	definitions := r.dynamic.Resource(definitionGVR)
	created, err := definitions.Create(t.Context(), definition, metav1.CreateOptions{})
	require.NoError(t, err)
	w, err := definitions.Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + created.GetName(), ResourceVersion: created.GetResourceVersion()})
	require.NoError(t, err)
	defer w.Stop()
	for event := range w.ResultChan() {
		text, err := json.Marshal(event.Object)
		require.NoError(t, err)
		parsed, err := parseDefinition(&Object{JSON: text})
		require.NoError(t, err)
		if parsed.established {
			return created
		}
	}
	t.Fatal("the definition was not established")
	return nil
}

// delete removes a definition and waits until it is gone.
func (r *realServer) delete(t *testing.T, name string) {
	t.Helper()
	definitions := r.dynamic.Resource(definitionGVR)
	list, err := definitions.List(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	require.NoError(t, err)
	w, err := definitions.Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + name, ResourceVersion: list.GetResourceVersion()})
	require.NoError(t, err)
	defer w.Stop()
	require.NoError(t, definitions.Delete(t.Context(), name, metav1.DeleteOptions{}))
	// If an API server cannot delete the instances at once, it retries with growing delays. A change makes it retry now.
	touch := time.NewTicker(10 * time.Second)
	defer touch.Stop()
	limit := time.After(deadline)
	for {
		select {
		case <-limit:
			t.Fatalf("definition %s is not gone", name)
		case event, open := <-w.ResultChan():
			if !open || event.Type == watch.Deleted {
				return
			}
		case at := <-touch.C:
			body := fmt.Sprintf(`{"metadata":{"annotations":{"touched":%q}}}`, at)
			_, err := definitions.Patch(t.Context(), name, types.MergePatchType, []byte(body), metav1.PatchOptions{})
			if !apierrors.IsNotFound(err) {
				require.NoError(t, err)
			}
		}
	}
}

func (r *realServer) patch(t *testing.T, name, patch string) {
	t.Helper()
	_, err := r.dynamic.Resource(definitionGVR).Patch(t.Context(), name, types.JSONPatchType, []byte(patch), metav1.PatchOptions{})
	require.NoError(t, err)
}

func object(apiVersion, kind, name string, more map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	for key, value := range more {
		o.Object[key] = value
	}
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	o.SetName(name)
	return o
}

func title(plural string) string { return strings.ToUpper(plural[:1]) + plural[1:] }

// definitionOf returns a CustomResourceDefinition whose last version is the storage version.
func definitionOf(plural, group string, versions ...string) *unstructured.Unstructured {
	var list []any
	for i, version := range versions {
		list = append(list, map[string]any{"name": version, "served": true, "storage": i == len(versions)-1,
			"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}}})
	}
	return object("apiextensions.k8s.io/v1", "CustomResourceDefinition", plural+"."+group, map[string]any{"spec": map[string]any{
		"group": group, "scope": "Namespaced", "versions": list,
		"names": map[string]any{"plural": plural, "singular": strings.TrimSuffix(plural, "s"), "kind": title(plural), "listKind": title(plural) + "List",
			"shortNames": []any{plural + "-short"}, "categories": []any{"all"}},
	}})
}

// signallingStore signals each change.
type signallingStore struct {
	cache.Store
	changed chan struct{}
}

func (s *signallingStore) Add(o any) error    { defer s.signal(); return s.Store.Add(o) }
func (s *signallingStore) Update(o any) error { defer s.signal(); return s.Store.Update(o) }
func (s *signallingStore) Delete(o any) error { defer s.signal(); return s.Store.Delete(o) }
func (s *signallingStore) Replace(list []any, version string) error {
	defer s.signal()
	return s.Store.Replace(list, version)
}
func (s *signallingStore) signal() { s.changed <- struct{}{} }

// await waits until holds returns true, and checks it after each signal.
func await(t *testing.T, signal <-chan struct{}, holds func() bool) {
	t.Helper()
	limit := time.After(deadline)
	for !holds() {
		select {
		case <-signal:
		case <-limit:
			t.Fatal("it did not happen in time")
		}
	}
}

func (r *realServer) config(t *testing.T, user string) *rest.Config {
	t.Helper()
	config, err := r.plane.APIServer.Config(user)
	require.NoError(t, err)
	return config
}
