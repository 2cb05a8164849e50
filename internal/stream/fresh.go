package stream

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/kuberewind/kuberewind/kube"
)

// fresh lists over the usual connection. It watches over connections of its own, which may lead to another API server
// behind the same address.
type fresh struct{ lw *kube.ListWatch }

var _ cache.ListerWatcherWithContext = fresh{}

// List implements cache.Lister.
func (f fresh) List(options metav1.ListOptions) (runtime.Object, error) { return f.lw.List(options) }

// Watch implements cache.Watcher.
func (f fresh) Watch(options metav1.ListOptions) (watch.Interface, error) {
	return f.WatchWithContext(context.Background(), options)
}

// ListWithContext implements cache.ListerWithContext.
func (f fresh) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	return f.lw.ListWithContext(ctx, options)
}

// WatchWithContext implements cache.WatcherWithContext.
func (f fresh) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	return f.lw.WatchFresh(ctx, options)
}
