package system_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/kuberewind/kuberewind/internal/controlplane"
	"github.com/kuberewind/kuberewind/kube"
	"github.com/kuberewind/kuberewind/reflector"
)

// heard is a store that passes on each object that it gets.
type heard struct{ calls chan string }

func (h heard) send(what string, rv string) error {
	h.calls <- what + " " + rv
	return nil
}

func (h heard) Add(obj any) error        { return h.send("add", obj.(*kube.Object).ResourceVersion) }
func (h heard) Update(obj any) error     { return h.send("update", obj.(*kube.Object).ResourceVersion) }
func (h heard) Delete(obj any) error     { return h.send("delete", obj.(*kube.Object).ResourceVersion) }
func (h heard) Bookmark(rv string) error { return h.send("bookmark", rv) }
func (heard) Resync() error              { return nil }
func (h heard) Replace(_ []any, rv string) error {
	return h.send("replace", rv)
}

var _ cache.ReflectorStore = heard{}

// next is what the store gets next.
func (h heard) next(t *testing.T) string {
	t.Helper()
	select {
	case call := <-h.calls:
		return call
	case <-time.After(patience):
		t.Fatalf("the store got nothing for %s", patience)
		return ""
	}
}

// createAgain creates on whichever connection is left, and returns the resource version.
func (a *act) createAgain(gvr schema.GroupVersionResource, name string) (rv string) {
	a.t.Helper()
	eventually(a.t.Context(), a.t, name, func() bool {
		created, err := a.in(gvr).Create(a.t.Context(), template(gvr, "default", name), metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) { // the answer to the try before was lost
			created, err = a.in(gvr).Get(a.t.Context(), name, metav1.GetOptions{})
		}
		if err == nil {
			rv = created.GetResourceVersion()
		}
		return err == nil
	})
	return rv
}

// TestEventsDoNotAgeOutOfACompactedEtcd: the API server sends no bookmarks of Events. Their position stands still while they
// are quiet and other objects are written, and etcd forgets it.
func TestEventsDoNotAgeOutOfACompactedEtcd(t *testing.T) {
	t.Parallel()
	w := &world{plane: controlplane.ForTest(t, controlplane.Options{})}
	client, err := kube.NewClient(w.plane.Config(), kube.Options{})
	require.NoError(t, err)
	t.Cleanup(client.Close)
	a := w.act(t)
	eventually(t.Context(), t, "the default namespace", func() bool {
		_, err := a.in(namespaces).Get(t.Context(), "default", metav1.GetOptions{})
		return err == nil
	})
	start := a.create(events, template(events, "default", "first")).GetResourceVersion()

	store := heard{calls: make(chan string, 100)}
	resource := kube.Resource{Version: "v1", Name: "events", Kind: "Event", Namespaced: true}
	follow := func(from string) (r *reflector.Reflector, stop func()) {
		r = reflector.NewReflectorWithOptions(client.ListWatch(resource, ""), &kube.Object{}, store, reflector.Options{
			ResourceVersion: from, RecoverRevisions: 100, LookInterval: time.Second,
		})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); r.RunWithContext(ctx) }()
		stop = func() { cancel(); <-done }
		t.Cleanup(stop)
		return r, stop
	}
	r, stop := follow(start)

	for round := range 3 {
		for i := range 5 {
			a.createAgain(configMaps, fmt.Sprint("other-", round, "-", i))
		}
		now, err := w.plane.Etcd.Revision(t.Context())
		require.NoError(t, err)
		for reached := int64(0); reached < now; {
			var what string
			_, err := fmt.Sscan(store.next(t), &what, &reached)
			require.NoError(t, err)
			require.NotEqual(t, "replace", what) // The API server may have something to say of itself.
		}
		require.NoError(t, w.plane.Etcd.Compact(t.Context(), now))
		require.Positive(t, w.plane.APIServer.CutConnections())
	}
	// A client goes on from there: etcd has kept only the later revisions.
	stop()
	position := r.ResumeResourceVersion()
	for i := range 5 {
		a.createAgain(configMaps, fmt.Sprint("meanwhile-", i))
	}
	missed := a.createAgain(events, "missed")
	follow(position)
	for call := ""; call != "add "+missed; {
		call = store.next(t)
		require.NotContains(t, call, "replace")
	}
	last := a.createAgain(events, "last")
	for call := ""; call != "add "+last; {
		call = store.next(t)
		require.NotContains(t, call, "replace")
	}
}
