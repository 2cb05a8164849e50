package history_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/pgtest"
	"github.com/kuberewind/kuberewind/patch"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

var (
	pods        = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	noon        = time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)
)

// This example runs an informer against the hour before three o'clock, sixty times as fast as it was recorded.
func ExampleNewListWatch() {
	ctx := context.Background()
	record, err := history.Open(ctx, "postgres://auditor@localhost/kuberewind", history.Options{})
	if err != nil {
		panic(err)
	}
	defer record.Close()
	three := time.Date(2026, 3, 10, 3, 0, 0, 0, time.UTC)
	lw := history.NewListWatch(record, history.ListWatchOptions{
		Resource:      schema.GroupVersionResource{Version: "v1", Resource: "pods"},
		PlayerOptions: history.PlayerOptions{From: history.At(three.Add(-time.Hour)), Until: history.At(three), Speed: 60},
	})
	informer := cache.NewSharedIndexInformer(lw, &unstructured.Unstructured{}, 0, cache.Indexers{})
	go informer.RunWithContext(ctx)
	if err := lw.Wait(ctx); err != nil {
		panic(err)
	}
}

// watchdog is a small, ordinary controller with informers, a work queue and Listers. It reports restarted Pods, and counts
// the Pods that each Deployment lacks. It does not know that it runs against a record.
type watchdog struct {
	pods, deployments cache.GenericLister
	queue             workqueue.TypedRateLimitingInterface[string]

	mu       sync.Mutex // protects what follows
	restarts []string
	lacking  map[string]int64

	handled atomic.Int64
	called  chan struct{} // has room for one: handled has changed
}

func newWatchdog(podInformer, deploymentInformer cache.SharedIndexInformer) (*watchdog, error) {
	w := &watchdog{
		pods:        cache.NewGenericLister(podInformer.GetIndexer(), pods.GroupResource()),
		deployments: cache.NewGenericLister(deploymentInformer.GetIndexer(), deployments.GroupResource()),
		queue:       workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]()),
		lacking:     make(map[string]int64), called: make(chan struct{}, 1),
	}
	_, err := podInformer.AddEventHandler(w.handler(func(pod *unstructured.Unstructured) string {
		return pod.GetNamespace() + "/" + pod.GetLabels()["app"]
	}))
	if err != nil {
		return nil, err
	}
	_, err = deploymentInformer.AddEventHandler(w.handler(func(deployment *unstructured.Unstructured) string {
		return deployment.GetNamespace() + "/" + deployment.GetName()
	}))
	return w, err
}

func (w *watchdog) handler(key func(*unstructured.Unstructured) string) cache.ResourceEventHandler {
	enqueue := func(object any) {
		if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
			object = gone.Obj
		}
		w.queue.Add(key(object.(*unstructured.Unstructured)))
		w.handled.Add(1)
		select {
		case w.called <- struct{}{}:
		default:
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: enqueue,
		UpdateFunc: func(before, after any) {
			w.compare(before.(*unstructured.Unstructured), after.(*unstructured.Unstructured))
			enqueue(after)
		},
		DeleteFunc: enqueue,
	}
}

// compare reports a restart.
func (w *watchdog) compare(before, after *unstructured.Unstructured) {
	was, _, _ := unstructured.NestedInt64(before.Object, "status", "restarts")
	is, _, _ := unstructured.NestedInt64(after.Object, "status", "restarts")
	if is > was {
		reason, _, _ := unstructured.NestedString(after.Object, "status", "reason")
		w.mu.Lock()
		defer w.mu.Unlock()
		w.restarts = append(w.restarts, fmt.Sprintf("rv %s: %s was restarted (%d): %s", after.GetResourceVersion(), after.GetName(), is, reason))
	}
}

func (w *watchdog) run() {
	for {
		key, shutdown := w.queue.Get()
		if shutdown {
			return
		}
		if err := w.reconcile(key); err != nil {
			w.queue.AddRateLimited(key)
		}
		w.queue.Done(key)
	}
}

func (w *watchdog) reconcile(key string) error {
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return err
	}
	lacking := int64(0)
	deployment, err := w.deployments.ByNamespace(namespace).Get(name)
	if err == nil {
		lacking, _, _ = unstructured.NestedInt64(deployment.(*unstructured.Unstructured).Object, "spec", "replicas")
	}
	all, err := w.pods.ByNamespace(namespace).List(labels.SelectorFromSet(labels.Set{"app": name}))
	if err != nil {
		return err
	}
	for _, pod := range all {
		if ready, _, _ := unstructured.NestedBool(pod.(*unstructured.Unstructured).Object, "status", "ready"); ready {
			lacking--
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lacking[key] = lacking
	return nil
}

// report returns the findings of the controller.
func (w *watchdog) report() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	lines := slices.Clone(w.restarts)
	for _, key := range slices.Sorted(func(yield func(string) bool) {
		for key := range w.lacking {
			if !yield(key) {
				return
			}
		}
	}) {
		lines = append(lines, fmt.Sprintf("%s lacks %d", key, w.lacking[key]))
	}
	return strings.Join(lines, "\n")
}

// replay runs the controller over the record between two instants, as fast as possible.
func replay(t *testing.T, record *history.Record, from, until history.Instant) string {
	t.Helper()
	player := history.NewPlayer(record, history.PlayerOptions{From: from, Until: until})
	podEvents := history.NewListWatch(record, history.ListWatchOptions{Resource: pods, Player: player})
	deploymentEvents := history.NewListWatch(record, history.ListWatchOptions{Resource: deployments, Player: player})
	podInformer := cache.NewSharedIndexInformer(podEvents, &unstructured.Unstructured{}, 0, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	deploymentInformer := cache.NewSharedIndexInformer(deploymentEvents, &unstructured.Unstructured{}, 0, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	controller, err := newWatchdog(podInformer, deploymentInformer)
	require.NoError(t, err)

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var running sync.WaitGroup
	running.Go(func() { podInformer.RunWithContext(ctx) })
	running.Go(func() { deploymentInformer.RunWithContext(ctx) })
	running.Go(controller.run)

	require.NoError(t, player.Wait(ctx))
	for controller.handled.Load() < podEvents.Delivered()+deploymentEvents.Delivered() {
		<-controller.called
	}
	controller.queue.ShutDownWithDrain()
	controller.queue.ShutDown() // ShutDownWithDrain does not end the goroutine of delayed keys.
	cancel()
	running.Wait()
	return controller.report()
}

func TestAControllerRunsOverARecordedHour(t *testing.T) {
	record := recordedHour(t)
	for range 3 { // Each run returns the same report.
		require.Equal(t, strings.TrimSpace(`
rv 112: api-1 was restarted (1): OOMKilled
rv 116: api-1 was restarted (2): OOMKilled
rv 119: web-0 was restarted (1): Error
shop/api lacks 1
shop/web lacks 0`), replay(t, record, history.At(noon), history.Now()))
	}
	require.Equal(t, strings.TrimSpace(`
rv 112: api-1 was restarted (1): OOMKilled
shop/api lacks 1
shop/web lacks 2`), replay(t, record, history.At(noon), history.At(noon.Add(30*time.Minute))), "at half past")
}

func TestAListWatchServesWhatTheServerServed(t *testing.T) {
	record := recordedHour(t)
	lw := history.NewListWatch(record, history.ListWatchOptions{Resource: pods, PlayerOptions: history.PlayerOptions{From: history.At(noon)}})
	list, err := lw.List(metav1.ListOptions{})
	require.NoError(t, err)
	rv := list.(metav1.ListInterface).GetResourceVersion()
	require.Equal(t, "100", rv)
	require.Len(t, list.(*unstructured.UnstructuredList).Items, 4)
	require.Equal(t, "PodList", list.GetObjectKind().GroupVersionKind().Kind)

	all := taken(t, lw, rv)
	require.Equal(t, "MODIFIED api-1 112", all[0])
	require.Contains(t, all, "ADDED web-2 114")
	require.Contains(t, all, "DELETED api-2 124")
	require.Equal(t, "BOOKMARK  124", all[len(all)-1])
	for i, rv := range []string{"112", "114", "116"} {
		at := slices.IndexFunc(all, func(e string) bool { return strings.HasSuffix(e, " "+rv) })
		require.Equal(t, all[at+1:], taken(t, lw, rv), "%d: a watch continues from any resource version on record", i)
	}

	typed := history.NewListWatch(record, history.ListWatchOptions{Resource: pods, Namespace: "nowhere", PlayerOptions: history.PlayerOptions{From: history.AtRV("114")}})
	list, err = typed.List(metav1.ListOptions{})
	require.NoError(t, err)
	require.Empty(t, list.(*unstructured.UnstructuredList).Items)
	require.Equal(t, "114", list.(metav1.ListInterface).GetResourceVersion())
}

func TestAPlayWithoutUntilEndsWithTheRecord(t *testing.T) {
	record := recordedHour(t) // the record is months old; a play up to now would take minutes
	player := history.NewPlayer(record, history.PlayerOptions{From: history.At(noon), Speed: 36_000})
	events := history.NewListWatch(record, history.ListWatchOptions{Resource: pods, Player: player})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	w, err := events.WatchWithContext(ctx, metav1.ListOptions{})
	require.NoError(t, err)
	defer w.Stop()
	go func() {
		for range w.ResultChan() {
		}
	}()
	require.NoError(t, player.Wait(ctx))
	require.Equal(t, noon.Add(58*time.Minute), player.Now(), "the time of the last commit")
}

// taken returns the events of a watch up to the bookmark at its end.
func taken(t *testing.T, lw *history.ListWatch, rv string) (events []string) {
	t.Helper()
	w, err := lw.Watch(metav1.ListOptions{ResourceVersion: rv, AllowWatchBookmarks: true})
	require.NoError(t, err)
	defer w.Stop()
	for e := range w.ResultChan() {
		o, ok := e.Object.(metav1.Object)
		require.True(t, ok, "%v", e)
		events = append(events, fmt.Sprintf("%s %s %s", e.Type, o.GetName(), o.GetResourceVersion()))
		if e.Type == watch.Bookmark {
			return events
		}
	}
	require.Fail(t, "the watch ended", events)
	return nil
}

// recordedHour returns a record of a few changes between noon and one o'clock.
func recordedHour(t *testing.T) *history.Record {
	t.Helper()
	db := pgtest.New(t, pgtest.EmptyRecord)
	r := newRecording(t, db.URL())
	r.at(-5)
	r.list(pods, "100", pod("web-0", "", 0, true, "90"), pod("api-0", "", 0, true, "91"), pod("api-1", "", 0, true, "92"), pod("api-2", "", 0, true, "93"))
	r.list(deployments, "100", deployment("web", 1, "94"), deployment("api", 3, "95"))

	r.at(12)
	r.watch(pods, delta.Updated, pod("api-1", "OOMKilled", 1, false, "112"))
	r.at(20)
	r.watch(deployments, delta.Updated, deployment("web", 3, "113"))
	r.watch(pods, delta.Added, pod("web-2", "", 0, false, "114"))
	r.at(33)
	r.watch(pods, delta.Updated, pod("api-1", "OOMKilled", 2, false, "116"))
	r.watch(pods, delta.Updated, pod("web-2", "", 0, true, "117"))
	r.at(41)
	r.watch(pods, delta.Added, pod("web-1", "", 0, true, "118"))
	r.watch(pods, delta.Updated, pod("web-0", "Error", 1, true, "119"))
	r.at(52)
	r.watch(pods, delta.Updated, pod("api-1", "OOMKilled", 2, true, "121"))
	r.at(58)
	r.watch(pods, delta.Deleted, pod("api-2", "", 0, false, "124"))

	record, err := history.Open(t.Context(), db.URL(), history.Options{})
	require.NoError(t, err)
	t.Cleanup(record.Close)
	return record
}

// A recording writes what a recorder would write.
type recording struct {
	t       *testing.T
	sink    *postgres.Sink
	streams map[schema.GroupVersionResource]*postgres.Stream
	now     time.Time
}

func newRecording(t *testing.T, url string) *recording {
	t.Helper()
	r := &recording{t: t, streams: make(map[schema.GroupVersionResource]*postgres.Stream), now: noon.Add(-10 * time.Minute)}
	var err error
	r.sink, err = postgres.Open(t.Context(), postgres.Config{
		URL: url, ClusterUID: "5f0c2f0e-0000-4000-8000-000000000001", ClusterName: "test", Recorder: "test", Version: "v0", Now: func() time.Time { return r.now },
	})
	require.NoError(t, err)
	t.Cleanup(r.sink.Close)
	for resource, kind := range map[schema.GroupVersionResource]string{pods: "Pod", deployments: "Deployment"} {
		r.streams[resource], err = r.sink.Stream(t.Context(), postgres.StreamSpec{Group: resource.Group, Resource: resource.Resource, Version: resource.Version, Kind: kind, Namespaced: true})
		require.NoError(t, err)
	}
	return r
}

// at sets the clock to this many minutes past noon.
func (r *recording) at(minutes int) { r.now = noon.Add(time.Duration(minutes) * time.Minute) }

func (r *recording) list(resource schema.GroupVersionResource, rv string, objects ...*object) {
	r.t.Helper()
	var items []postgres.Item
	for _, o := range objects {
		items = append(items, postgres.Item{Kind: postgres.Delta, Type: delta.Sync, Source: delta.SourceList, Object: o})
	}
	r.commit(resource, append(items, postgres.Item{Kind: postgres.Marked, Position: rv, Marker: delta.Marker{Kind: delta.Replaced, Cause: "first_list", ToRV: rv}})...)
}

func (r *recording) watch(resource schema.GroupVersionResource, kind delta.Type, o *object) {
	r.t.Helper()
	r.commit(resource, postgres.Item{Kind: postgres.Delta, Type: kind, Source: delta.SourceWatch, Object: o, Position: o.rv})
}

func (r *recording) commit(resource schema.GroupVersionResource, items ...postgres.Item) {
	r.t.Helper()
	for i := range items {
		items[i].Stream, items[i].Observed, items[i].Version = r.streams[resource].ID(), r.now, resource.Version
	}
	batch, err := r.sink.Encode(items)
	require.NoError(r.t, err)
	require.NoError(r.t, r.sink.Commit(r.t.Context(), batch))
}

// An object is one version that the API server served.
type object struct {
	name, rv string
	doc      patch.Doc
}

func (o *object) GetNamespace() string       { return "shop" }
func (o *object) GetName() string            { return o.name }
func (o *object) GetUID() types.UID          { return types.UID("uid-" + o.name) }
func (o *object) GetResourceVersion() string { return o.rv }
func (o *object) Doc() patch.Doc             { return o.doc }

func pod(name, reason string, restarts int64, ready bool, rv string) *object {
	app, _, _ := strings.Cut(name, "-")
	return made(name, rv, map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"labels": map[string]any{"app": app}},
		"status": map[string]any{"ready": ready, "restarts": restarts, "reason": reason},
	})
}

func deployment(name string, replicas int64, rv string) *object {
	return made(name, rv, map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "spec": map[string]any{"replicas": replicas}})
}

func made(name, rv string, fields map[string]any) *object {
	o := &object{name: name, rv: rv}
	u := &unstructured.Unstructured{Object: fields}
	u.SetNamespace("shop")
	u.SetName(name)
	u.SetUID(o.GetUID())
	u.SetResourceVersion(rv)
	text, err := runtime.Encode(unstructured.UnstructuredJSONScheme, u)
	if err == nil {
		o.doc, err = patch.Canonical(text)
	}
	if err != nil {
		panic(err)
	}
	return o
}
