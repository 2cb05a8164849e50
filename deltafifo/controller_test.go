package deltafifo

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	cachetesting "k8s.io/client-go/tools/cache/testing"
)

// TestAControllerOfClientGoRunsOnIt drives a FIFO as client-go drives its own queues. Client-go's reflector feeds it.
// Client-go's controller pops from it into a store, and the store is KnownObjects.
func TestAControllerOfClientGoRunsOnIt(t *testing.T) {
	source := cachetesting.NewFakeControllerSource()
	defer source.Shutdown()
	pod := func(name, node string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: "u"}, Spec: corev1.PodSpec{NodeName: node}}
	}
	source.Add(pod("a", ""))
	source.Add(pod("b", ""))

	store := cache.NewStore(cache.DeletionHandlingMetaNamespaceKeyFunc)
	seen := make(chan string, 100)
	fifo := New(Options{}).FIFO(FIFOOptions{KnownObjects: store})
	process := func(d cache.Delta) error {
		key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(d.Object)
		if err != nil {
			return err
		}
		if d.Type == cache.Deleted {
			err = store.Delete(d.Object)
		} else {
			err = store.Update(d.Object)
		}
		seen <- string(d.Type) + " " + key
		return err
	}
	controller := cache.New(&cache.Config{
		Queue: fifo, ListerWatcher: source, ObjectType: &corev1.Pod{},
		Process: func(o any, _ bool) error { return process(*o.(cache.Deltas).Newest()) },
		ProcessBatch: func(deltas []cache.Delta, _ bool) (err error) {
			for _, d := range deltas {
				err = errors.Join(err, process(d))
			}
			return err
		},
	})
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { controller.RunWithContext(ctx) })

	require.ElementsMatch(t, []string{"Sync ns/a", "Sync ns/b"}, []string{<-seen, <-seen})
	<-controller.HasSyncedChecker().Done()
	source.Modify(pod("a", "node"))
	require.Equal(t, "Updated ns/a", <-seen)
	source.Delete(pod("b", ""))
	require.Equal(t, "Deleted ns/b", <-seen)

	stop()
	wg.Wait()
	require.Equal(t, []string{"ns/a"}, store.ListKeys())
	_, err := fifo.Pop(func(any, bool) error { return nil })
	require.ErrorIs(t, err, cache.ErrFIFOClosed)
}
