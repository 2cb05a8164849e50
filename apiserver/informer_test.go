package apiserver_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/kuberewind/kuberewind/history"
)

// informed runs an informer of pods at a root until the test ends. Each event is sent as its kind and its version. Objects of the initial list
// are not sent.
func (p *past) informed(root string) (informer cache.SharedIndexInformer, events <-chan string) {
	p.Helper()
	client, err := kubernetes.NewForConfig(&rest.Config{Host: p.server.URL + root})
	require.NoError(p, err)
	informer = informers.NewSharedInformerFactory(client, 0).Core().V1().Pods().Informer()
	all := make(chan string, 10_000)
	send := func(kind string, object any) {
		all <- kind + " " + object.(metav1.Object).GetResourceVersion()
	}
	_, err = informer.AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(object any, first bool) {
			if !first {
				send("Added", object)
			}
		},
		UpdateFunc: func(_, object any) { send("Updated", object) },
		DeleteFunc: func(object any) {
			if _, unknown := object.(cache.DeletedFinalStateUnknown); !unknown { // else the object was missing in a list
				send("Deleted", object)
			}
		},
	})
	require.NoError(p, err)
	ctx, cancel := context.WithCancel(p.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		informer.RunWithContext(ctx)
	}()
	p.Cleanup(func() {
		cancel()
		<-done
	})
	require.True(p, cache.WaitForCacheSync(p.Context().Done(), informer.HasSynced))
	return informer, all
}

// cached returns the versions of an informer's objects, by UID.
func cached(informer cache.SharedIndexInformer) map[string]string {
	versions := map[string]string{}
	for _, object := range informer.GetStore().List() {
		versions[string(object.(metav1.Object).GetUID())] = object.(metav1.Object).GetResourceVersion()
	}
	return versions
}

func TestAnInformerFollowsASessionThatPlaysAndSeeks(t *testing.T) {
	p := serveSessions(t)
	uid := p.record.Cluster().UID
	extent, err := p.record.Extent(t.Context())
	require.NoError(t, err)
	start, err := p.record.Resolve(t.Context(), history.At(extent.LastAt.Add(-3*time.Minute)), history.Scope{})
	require.NoError(t, err)
	state := p.set("night", fmt.Sprintf(`{"at": "seq:%d", "speed": 60}`, start.Seq))
	informer, events := p.informed(state.Path)
	early, _, _ := p.listed("/clusters/" + uid + fmt.Sprintf("/at/seq:%d", start.Seq))
	require.Equal(t, early, cached(informer))

	var expected, got []string
	var last time.Time
	for d, err := range p.record.Deltas(t.Context(), history.Query{Scope: history.Scope{Streams: p.streams("pods")}, FromSeq: start.Seq + 1}) {
		require.NoError(t, err)
		expected, last = append(expected, fmt.Sprintf("%s %s", d.Type, d.RV)), d.ObservedAt
	}
	require.Greater(t, len(expected), 10)
	began := time.Now()
	p.set("night", `{"playing": true}`)
	for range expected {
		got = append(got, <-events)
	}
	require.Equal(t, expected, got, "each event comes once, in order")
	require.Greater(t, time.Since(began), last.Sub(start.Time)/60-time.Second, "and at its time")

	p.set("night", fmt.Sprintf(`{"at": "seq:%d", "playing": false}`, start.Seq))
	sought := time.Now()
	require.Eventually(t, func() bool { return fmt.Sprint(cached(informer)) == fmt.Sprint(early) }, 5*time.Minute, 10*time.Millisecond)
	t.Logf("the informer shows the older state %s after the seek", time.Since(sought).Round(time.Millisecond))
}
