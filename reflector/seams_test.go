package reflector

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	fcache "k8s.io/client-go/tools/cache/testing"
)

func named(name, hostname string) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)},
		Spec:       v1.PodSpec{Hostname: hostname},
	}
}

// faked returns client-go's double of a source with one pod. It is shut down with the test.
func faked(t *testing.T) *fcache.FakeControllerSource {
	source := fcache.NewFakeControllerSource()
	source.Add(named("a", "1"))
	t.Cleanup(source.Shutdown)
	return source
}

func TestClientGosStoreMirrorsClientGosFakeSource(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		source, store := faked(t), cache.NewStore(cache.MetaNamespaceKeyFunc)
		r := NewReflector(source, &v1.Pod{}, store, 0)
		start(t, r)
		require.Equal(t, []string{"ns/a"}, store.ListKeys())
		source.Add(named("b", "1"))
		source.Modify(named("a", "2"))
		source.Delete(named("b", "1"))
		synctest.Wait()
		require.Equal(t, []string{"ns/a"}, store.ListKeys())
		object, _, _ := store.GetByKey("ns/a")
		require.Equal(t, "2", object.(*v1.Pod).Spec.Hostname)
		require.Equal(t, "4", r.LastSyncResourceVersion())
	})
}

func TestClientGosStoreSurvivesALostHistory(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		source, store := faked(t), cache.NewStore(cache.MetaNamespaceKeyFunc)
		start(t, NewReflector(source, &v1.Pod{}, store, 0))
		source.AddDropWatch(named("b", "1"))
		source.DeleteDropWatch(named("a", "1"))
		source.ResetWatch()
		elapse(time.Minute)
		require.Equal(t, []string{"ns/b"}, store.ListKeys())
	})
}

func TestClientGosQueueGetsEveryDeltaInOrderAndTransformsItItself(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		source, transformed := faked(t), 0
		queue := cache.NewRealFIFOWithOptions(cache.RealFIFOOptions{
			KeyFunction:  cache.MetaNamespaceKeyFunc,
			KnownObjects: cache.NewStore(cache.MetaNamespaceKeyFunc),
			Transformer:  func(object any) (any, error) { transformed++; return object, nil },
		})
		start(t, NewReflector(source, &v1.Pod{}, queue, 0))
		source.Modify(named("a", "2"))
		source.Modify(named("a", "3"))
		source.Delete(named("a", "3"))
		synctest.Wait()
		var types []cache.DeltaType
		for range 4 {
			_, err := queue.Pop(func(object any, _ bool) error {
				for _, delta := range object.(cache.Deltas) {
					types = append(types, delta.Type)
				}
				return nil
			})
			require.NoError(t, err)
		}
		require.Equal(t, []cache.DeltaType{cache.Replaced, cache.Updated, cache.Updated, cache.Deleted}, types)
		require.Equal(t, 4, transformed, "each object once")
	})
}

func TestClientGosReflectorAndThisOneFillAStoreAlike(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		ours, theirs := cache.NewStore(cache.MetaNamespaceKeyFunc), cache.NewStore(cache.MetaNamespaceKeyFunc)
		source := faked(t)
		start(t, NewReflector(source, &v1.Pod{}, ours, 0))
		upstream := cache.NewReflector(&cache.ListWatch{ListFunc: source.List, WatchFunc: source.Watch}, &v1.Pod{}, theirs, 0)
		stop, done := make(chan struct{}), make(chan struct{})
		go func() { defer close(done); upstream.Run(stop) }()
		synctest.Wait()
		source.Add(named("b", "1"))
		source.Add(named("c", "1"))
		source.Modify(named("b", "2"))
		source.Delete(named("a", "1"))
		synctest.Wait()
		close(stop)
		<-done
		require.ElementsMatch(t, theirs.List(), ours.List())
		require.Len(t, ours.List(), 2)
	})
}
