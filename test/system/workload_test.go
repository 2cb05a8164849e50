package system_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// A workload writes to a cluster as its users and controllers do, from several clients at once. Each client has
// namespaces of its own, so that no write depends on another client's.
type workload struct {
	client  dynamic.Interface
	rest    rest.Interface
	seed    uint64
	clients int
	writes  int
	done    atomic.Int64
	// half is closed when half of the writes are done: the moment at which the CRD is made.
	half      chan struct{}
	halfDone  atomic.Bool
	instances atomic.Bool // the CRD is there
}

var (
	configMaps      = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	secrets         = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	services        = schema.GroupVersionResource{Version: "v1", Resource: "services"}
	pods            = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	nodes           = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	namespaces      = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	serviceAccounts = schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}
	events          = schema.GroupVersionResource{Version: "v1", Resource: "events"}
	deployments     = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	replicaSets     = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "replicasets"}
	jobs            = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}
	leases          = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
	roles           = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"}
	ingresses       = schema.GroupVersionResource{Group: "networking.k8s.io", Version: "v1", Resource: "ingresses"}
	crds            = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	widgets         = schema.GroupVersionResource{Group: "example.kuberewind.dev", Version: "v1", Resource: "widgets"}
)

func newWorkload(config *rest.Config, seed uint64, clients, writes int) (*workload, error) {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst, config.WarningHandler = -1, -1, rest.NoWarnings{}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	raw, err := rest.UnversionedRESTClientFor(dynamic.ConfigFor(config))
	if err != nil {
		return nil, err
	}
	return &workload{client: client, rest: raw, seed: seed, clients: clients, writes: writes, half: make(chan struct{})}, nil
}

// run returns when all writes are done.
func (w *workload) run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	for i := range w.clients {
		g.Go(func() error {
			c := &client{workload: w, id: i, rand: rand.New(rand.NewPCG(w.seed, uint64(i))), objects: map[schema.GroupVersionResource][]string{}}
			return c.run(ctx)
		})
	}
	g.Go(func() error {
		select {
		case <-w.half:
			return w.makeCRD(ctx)
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	return g.Wait()
}

func (w *workload) makeCRD(ctx context.Context) error {
	if _, err := w.client.Resource(crds).Create(ctx, widgetCRD(), metav1.CreateOptions{}); err != nil {
		return err
	}
	w.instances.Store(true)
	return nil
}

// wrote counts n writes and says whether there are more to do.
func (w *workload) wrote(n int) bool {
	done := w.done.Add(int64(n))
	if done >= int64(w.writes/2) && w.halfDone.CompareAndSwap(false, true) {
		close(w.half)
	}
	return done < int64(w.writes)
}

type client struct {
	*workload
	id        int
	rand      *rand.Rand
	namespace string
	round     int
	serial    int
	objects   map[schema.GroupVersionResource][]string
}

func (c *client) run(ctx context.Context) error {
	for {
		if err := c.enterNamespace(ctx); err != nil {
			return fmt.Errorf("client %d: namespace: %w", c.id, err)
		}
		for range 400 {
			n, err := c.step(ctx)
			if err != nil {
				return fmt.Errorf("client %d: %w", c.id, err)
			}
			if !c.wrote(n) {
				return nil
			}
		}
		if err := c.leaveNamespace(ctx); err != nil {
			return fmt.Errorf("client %d: leave namespace: %w", c.id, err)
		}
	}
}

func (c *client) enterNamespace(ctx context.Context) error {
	c.namespace = fmt.Sprintf("client-%d-%d", c.id, c.round)
	c.round++
	clear(c.objects)
	_, err := c.client.Resource(namespaces).Create(ctx, object("v1", "Namespace", "", c.namespace, nil), metav1.CreateOptions{})
	return err
}

// leaveNamespace does what the namespace controller does: it empties the namespace, then finalizes it.
func (c *client) leaveNamespace(ctx context.Context) error {
	for gvr := range c.objects {
		if gvr == nodes {
			continue
		}
		if err := c.client.Resource(gvr).Namespace(c.namespace).DeleteCollection(ctx, noGrace(), metav1.ListOptions{}); err != nil {
			return err
		}
	}
	if err := c.client.Resource(namespaces).Delete(ctx, c.namespace, metav1.DeleteOptions{}); err != nil {
		return err
	}
	ns, err := c.client.Resource(namespaces).Get(ctx, c.namespace, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if err := unstructured.SetNestedStringSlice(ns.Object, nil, "spec", "finalizers"); err != nil {
		return err
	}
	body, err := ns.MarshalJSON()
	if err != nil {
		return err
	}
	return c.rest.Put().AbsPath("/api/v1/namespaces", c.namespace, "finalize").Body(body).
		SetHeader("Content-Type", "application/json").Do(ctx).Error()
}

// step makes one or a few writes and says how many.
func (c *client) step(ctx context.Context) (int, error) {
	kinds := []schema.GroupVersionResource{
		configMaps, secrets, services, pods, pods, serviceAccounts, deployments, deployments, replicaSets,
		jobs, leases, roles, ingresses, nodes, events, events,
	}
	if c.instances.Load() {
		kinds = append(kinds, widgets, widgets, widgets)
	}
	gvr := kinds[c.rand.IntN(len(kinds))]
	if gvr == events {
		return 1, c.createEvent(ctx)
	}
	names := c.objects[gvr]
	if len(names) < 3 {
		return 1, c.create(ctx, gvr, c.nextName())
	}
	name := names[c.rand.IntN(len(names))]
	switch p := c.rand.IntN(100); {
	case p < 45:
		return 1, c.patch(ctx, gvr, name)
	case p < 60:
		return 1, c.status(ctx, gvr, name)
	case p < 70:
		return 1, c.apply(ctx, gvr, name)
	case p < 80:
		return 1, c.create(ctx, gvr, c.nextName())
	case p < 90:
		return 2, c.recreate(ctx, gvr, name)
	case p < 95:
		return 4, c.deleteWithFinalizer(ctx)
	case p < 97 && gvr != nodes:
		return len(names), c.deleteCollection(ctx, gvr)
	default:
		return 1, c.delete(ctx, gvr, name)
	}
}

func (c *client) nextName() string {
	c.serial++
	return fmt.Sprintf("c%d-%d", c.id, c.serial)
}

func (c *client) in(gvr schema.GroupVersionResource) dynamic.ResourceInterface {
	if gvr == nodes || gvr == namespaces {
		return c.client.Resource(gvr)
	}
	return c.client.Resource(gvr).Namespace(c.namespace)
}

func (c *client) create(ctx context.Context, gvr schema.GroupVersionResource, name string) error {
	err := c.retryNotFound(ctx, gvr, func() error {
		_, err := c.in(gvr).Create(ctx, template(gvr, c.namespace, name), metav1.CreateOptions{})
		return err
	})
	if err == nil {
		c.objects[gvr] = append(c.objects[gvr], name)
	}
	return wrap(err, "create", gvr, name)
}

// retryNotFound waits for a CRD that is being established.
func (c *client) retryNotFound(ctx context.Context, gvr schema.GroupVersionResource, f func() error) error {
	for {
		err := f()
		if gvr != widgets || !apierrors.IsNotFound(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (c *client) patch(ctx context.Context, gvr schema.GroupVersionResource, name string) error {
	body := fmt.Sprintf(`{"metadata":{"labels":{"touched":"%d"},"annotations":{"example.dev/note":"%s"}}}`, c.rand.IntN(1<<30), randomText(c.rand))
	if gvr == configMaps {
		body = fmt.Sprintf(`{"data":{"key-%d":%s}}`, c.rand.IntN(5), mustJSON(randomText(c.rand)))
	}
	_, err := c.in(gvr).Patch(ctx, name, types.MergePatchType, []byte(body), metav1.PatchOptions{})
	return wrap(err, "patch", gvr, name)
}

func (c *client) status(ctx context.Context, gvr schema.GroupVersionResource, name string) error {
	var body string
	switch gvr {
	case pods:
		body = fmt.Sprintf(`{"status":{"podIP":"10.1.%d.%d","phase":"Running"}}`, c.rand.IntN(250), c.rand.IntN(250))
	case deployments, replicaSets:
		body = fmt.Sprintf(`{"status":{"observedGeneration":%d}}`, c.rand.IntN(1000))
	case nodes:
		body = fmt.Sprintf(`{"status":{"capacity":{"cpu":"%d"}}}`, 1+c.rand.IntN(64))
	case widgets:
		body = fmt.Sprintf(`{"status":{"count":%d}}`, c.rand.Int64())
	default:
		return c.patch(ctx, gvr, name)
	}
	_, err := c.in(gvr).Patch(ctx, name, types.MergePatchType, []byte(body), metav1.PatchOptions{}, "status")
	return wrap(err, "patch status of", gvr, name)
}

func (c *client) apply(ctx context.Context, gvr schema.GroupVersionResource, name string) error {
	applied := object(apiVersion(gvr), kinds[gvr], c.namespaceOf(gvr), name, nil)
	applied.SetLabels(map[string]string{"applied": fmt.Sprint(c.rand.IntN(1 << 30))})
	_, err := c.in(gvr).Apply(ctx, name, applied, metav1.ApplyOptions{FieldManager: "applier", Force: true})
	return wrap(err, "apply", gvr, name)
}

func (c *client) namespaceOf(gvr schema.GroupVersionResource) string {
	if gvr == nodes {
		return ""
	}
	return c.namespace
}

func (c *client) delete(ctx context.Context, gvr schema.GroupVersionResource, name string) error {
	c.forget(gvr, name)
	return wrap(c.in(gvr).Delete(ctx, name, noGrace()), "delete", gvr, name)
}

func (c *client) recreate(ctx context.Context, gvr schema.GroupVersionResource, name string) error {
	if err := c.delete(ctx, gvr, name); err != nil {
		return err
	}
	return c.create(ctx, gvr, name)
}

func (c *client) deleteCollection(ctx context.Context, gvr schema.GroupVersionResource) error {
	c.objects[gvr] = nil
	return wrap(c.in(gvr).DeleteCollection(ctx, noGrace(), metav1.ListOptions{}), "delete all", gvr, "")
}

func (c *client) deleteWithFinalizer(ctx context.Context) error {
	name := c.nextName()
	held := template(configMaps, c.namespace, name)
	held.SetFinalizers([]string{"example.kuberewind.dev/hold"})
	if _, err := c.in(configMaps).Create(ctx, held, metav1.CreateOptions{}); err != nil {
		return wrap(err, "create with finalizer", configMaps, name)
	}
	if err := c.in(configMaps).Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		return wrap(err, "delete with finalizer", configMaps, name)
	}
	if err := c.patch(ctx, configMaps, name); err != nil {
		return err
	}
	_, err := c.in(configMaps).Patch(ctx, name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	return wrap(err, "release", configMaps, name)
}

func (c *client) createEvent(ctx context.Context) error {
	name := c.nextName()
	_, err := c.in(events).Create(ctx, template(events, c.namespace, name), metav1.CreateOptions{})
	return wrap(err, "create", events, name)
}

func (c *client) forget(gvr schema.GroupVersionResource, name string) {
	names := c.objects[gvr]
	for i := range names {
		if names[i] == name {
			c.objects[gvr] = append(names[:i], names[i+1:]...)
			return
		}
	}
}

func noGrace() metav1.DeleteOptions {
	// Without a garbage collector, the objects of a Job would not be orphaned, and the Job would stay.
	background := metav1.DeletePropagationBackground
	return metav1.DeleteOptions{GracePeriodSeconds: new(int64), PropagationPolicy: &background}
}

func wrap(err error, verb string, gvr schema.GroupVersionResource, name string) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	return fmt.Errorf("%s %s %s: %w", verb, gvr.Resource, name, err)
}

func mustJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// randomText holds what codecs trip over.
func randomText(r *rand.Rand) string {
	pieces := []string{"plain", "<html>&amp;", `back\\slash`, "tab\\there", "ünïcödé", "日本", "😀", "a/b~0~1", "", "12345678901234567890"}
	return fmt.Sprintf("%s %d", pieces[r.IntN(len(pieces))], r.IntN(1<<30))
}
