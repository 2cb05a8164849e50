package kube

import (
	"context"
	"errors"
	"fmt"
	"io"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// ListWatch lists and watches one resource, in one namespace or in all.
type ListWatch struct {
	client    *Client
	resource  Resource
	namespace string
}

var (
	_ cache.ListerWatcher            = (*ListWatch)(nil)
	_ cache.ListerWatcherWithContext = (*ListWatch)(nil)
)

// ListWatch returns the lister and watcher of a resource. An empty namespace means all namespaces.
func (c *Client) ListWatch(resource Resource, namespace string) *ListWatch {
	return &ListWatch{client: c, resource: resource, namespace: namespace}
}

// Resource returns the listed and watched resource.
func (lw *ListWatch) Resource() Resource { return lw.resource }

// IsWatchListSemanticsUnSupported makes client-go's reflector list. A list streamed through a watch would merge changes
// that happen while it is sent.
func (lw *ListWatch) IsWatchListSemanticsUnSupported() bool { return true }

// List implements cache.Lister.
func (lw *ListWatch) List(options metav1.ListOptions) (runtime.Object, error) {
	return lw.ListWithContext(context.Background(), options)
}

// Watch implements cache.Watcher.
func (lw *ListWatch) Watch(options metav1.ListOptions) (watch.Interface, error) {
	return lw.WatchWithContext(context.Background(), options)
}

// ListWithContext implements cache.ListerWithContext. It returns a *[List], which is one page if options has a limit.
func (lw *ListWatch) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	list, err := lw.Page(ctx, options)
	if err != nil {
		return nil, err
	}
	return list, nil
}

// Page reads one page of a list and decodes it while it arrives. If a page takes too much memory, Page requests it again
// with fewer objects. Without a limit, it returns the error, because a part would look like the whole list. If the server
// answered with an API status, the error is that status.
func (lw *ListWatch) Page(ctx context.Context, options metav1.ListOptions) (*List, error) {
	options.Watch = false
	for {
		list, err := lw.page(ctx, options)
		large := (*PageTooLargeError)(nil)
		if !errors.As(err, &large) {
			return list, err
		}
		if large.Asked = options.Limit; !large.canBeSmaller() {
			return nil, err
		}
		options.Limit = large.fitting()
	}
}

func (lw *ListWatch) page(ctx context.Context, options metav1.ListOptions) (*List, error) {
	// If decoding fails, this cancels the request. Otherwise client-go would read the rest of the body.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	body, err := lw.request(options).Stream(framed(ctx))
	if err != nil {
		return nil, lw.explain("list", err)
	}
	defer body.Close()
	list, err := decodePage(body, lw.resource, lw.client.options.MaxFrameBytes, lw.client.options.MaxPageBytes)
	if err == nil {
		_, err = io.Copy(io.Discard, body)
	}
	return list, err
}

// WatchWithContext implements cache.WatcherWithContext. It returns a *[Watch]. If ctx ends, the watch ends, too.
func (lw *ListWatch) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	options.Watch = true
	ctx, cancel := context.WithCancelCause(ctx)
	// Decompression would delay events of a compressed stream.
	body, err := lw.request(options).SetHeader("Accept-Encoding", "identity").Stream(framed(ctx))
	if err != nil {
		cancel(errStopped)
		return nil, lw.explain("watch", err)
	}
	return newWatch(ctx, cancel, body, lw.resource, lw.client.options.MaxFrameBytes), nil
}

// WatchFresh is WatchWithContext over a connection of its own (see [Client.Fresh]). The connection is closed when the watch
// ends.
func (lw *ListWatch) WatchFresh(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	fresh, err := lw.client.Fresh()
	if err != nil {
		return nil, err
	}
	w, err := fresh.ListWatch(lw.resource, lw.namespace).WatchWithContext(ctx, options)
	if err != nil {
		fresh.Close()
		return nil, err
	}
	context.AfterFunc(w.(*Watch).ctx, fresh.Close)
	return w, nil
}

// Get reads one object by name from etcd, past the server's watch cache. It shows the server's true state even if lists
// still come from a stale cache. If no such object exists, the error is a NotFound status.
func (lw *ListWatch) Get(ctx context.Context, namespace, name string) (*Object, error) {
	path := lw.resource.path(namespace, name)
	body, err := lw.client.rest.Get().AbsPath(path...).Stream(framed(ctx))
	if err != nil {
		return nil, explain(lw.resource.String()+named(namespace, name), err)
	}
	defer body.Close()
	s := newScanner(body, lw.client.options.MaxFrameBytes)
	o := &Object{}
	where, err := s.item(o)
	if err != nil {
		return nil, fmt.Errorf("%s%s: %w", lw.resource, named(namespace, name), err)
	}
	o.JSON = s.input.copyOf(where.start, where.end, 0)
	return o, nil
}

// explain adds the operation to the error. If the request was forbidden, it adds the right to grant.
func (lw *ListWatch) explain(verb string, err error) error {
	r := lw.resource
	err = explain(verb+" of "+r.String(), err)
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("%w; grant the recorder the rule {apiGroups: [%q], resources: [%q], verbs: [list, watch]}, or exclude the resource with --exclude %s",
			err, r.Group, r.Name, r.GroupResource())
	}
	return err
}

// request returns the request for the list or the watch that the options describe.
func (lw *ListWatch) request(options metav1.ListOptions) *rest.Request {
	return lw.client.rest.Get().
		AbsPath(lw.resource.path(lw.namespace)...).
		SpecificallyVersionedParams(&options, scheme.ParameterCodec, optionsVersion)
}

// optionsVersion is the version of ListOptions. It is the same for every resource.
var optionsVersion = schema.GroupVersion{Version: "v1"}
