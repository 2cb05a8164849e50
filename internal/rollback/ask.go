package rollback

import (
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/kuberewind/kuberewind/kube"
)

const (
	// askTimeout bounds each question. A request that the server does not answer must not delay the streams.
	askTimeout = 10 * time.Second
	// uncachedTimeout is less than the three seconds for which a watch cache waits for a version. Etcd answers at
	// once.
	uncachedTimeout = 2 * time.Second
)

// asker asks a server about one resource, and through the server the etcd that keeps it. It needs no lock.
type asker struct {
	name       string // for logs and proofs
	namespaced bool
	canonical  cache.TransformFunc // brings an object into the form in which it is recorded
	lister     atomic.Pointer[func(namespace string) cache.ListerWithContext]
}

// listerFor returns the lister of a namespace; an empty one means all namespaces.
func (a *asker) listerFor(namespace string) cache.ListerWithContext {
	return (*a.lister.Load())(namespace)
}

// watcher returns a client that watches the resource, if the server can be watched.
func (a *asker) watcher() (server cache.WatcherWithContext, watches bool) {
	server, watches = a.listerFor("").(cache.WatcherWithContext)
	return server, watches
}

// lookResult is what etcd says of a served version.
type lookResult int

const (
	inconclusive lookResult = iota // etcd has compacted the revision, or the server does not say
	match                          // etcd held the object as it was served
	mismatch                       // etcd held another version of the object, or none
	future                         // etcd has not reached that revision
)

// placeholder stands for an object if none is known. To ask which revision etcd has reached, any name will do.
var placeholder = servedVersion{name: "kuberewind"}

// look asks whether etcd held version v at a revision. v must be the newest version of its object at that revision.
// Etcd answers a list of one object by name at an exact revision, whatever the API server's cache holds: the cache
// has no such lists.
func (a *asker) look(ctx context.Context, v servedVersion, revision uint64) (lookResult, error) {
	result, err := a.lookUntilAnswered(ctx, v, revision)
	if kube.IsPermanentRefusal(err) {
		return inconclusive, nil
	}
	return result, err
}

// lookUntilAnswered is look for a caller that can ask again. An error of a server that starts, or has no etcd, is
// no answer: the caller gets that error.
func (a *asker) lookUntilAnswered(ctx context.Context, v servedVersion, revision uint64) (lookResult, error) {
	list, err := a.listOne(ctx, v, metav1.ListOptions{
		ResourceVersion: strconv.FormatUint(revision, 10), ResourceVersionMatch: metav1.ResourceVersionMatchExact,
	})
	switch {
	case kube.IsFutureRevision(err):
		return future, nil
	case kube.IsUnanswerable(err):
		return inconclusive, nil
	case err != nil:
		return inconclusive, fmt.Errorf("check %s at resource version %d: %w", a.name, revision, err)
	}
	metadata, err := meta.ListAccessor(list)
	if err != nil || metadata.GetResourceVersion() != strconv.FormatUint(revision, 10) {
		return inconclusive, err
	}
	if odd, ok := list.(interface{ Undecodable() []error }); ok && len(odd.Undecodable()) > 0 {
		return inconclusive, nil // The server has an object of that name, but cannot decode it.
	}
	found, err := a.find(list, v)
	switch {
	case err != nil:
		return inconclusive, err
	case v.deleted:
		return a.findEnd(list, v), nil
	case found:
		return match, nil
	}
	return mismatch, nil
}

// findEnd returns what a list says of the end of an object. If the list is empty, that proves nothing: in another
// history the name may be missing, too. Some aggregated servers still list the object, with the version that was
// its last.
func (a *asker) findEnd(list runtime.Object, v servedVersion) lookResult {
	if meta.LenList(list) == 0 {
		return inconclusive
	}
	if last, err := a.find(list, v); last || err != nil {
		return inconclusive
	}
	return mismatch
}

// find reports whether a list holds the served version.
func (a *asker) find(list runtime.Object, v servedVersion) (bool, error) {
	items, err := meta.ExtractList(list)
	if err != nil {
		return false, err
	}
	for _, item := range items {
		o, ok := item.(*kube.Object)
		if ok && o.Name == v.name && o.Namespace == v.namespace {
			return o.UID == v.uid && o.ResourceVersion == strconv.FormatUint(v.revision, 10) && a.sameMetadata(o, v), nil
		}
	}
	return false, nil
}

// lookNow is look for a revision that etcd has compacted. It gets the object as it is now, which cannot be older
// than the served version.
func (a *asker) lookNow(ctx context.Context, v servedVersion) (lookResult, error) {
	getter, ok := a.listerFor(v.namespace).(interface {
		Get(ctx context.Context, namespace, name string) (*kube.Object, error)
	})
	if v.name == "" || !ok {
		return inconclusive, nil
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	o, err := getter.Get(ctx, v.namespace, v.name)
	switch {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
		return inconclusive, nil // The object may have been deleted since.
	case err != nil:
		return inconclusive, fmt.Errorf("get the newest version of %s: %w", a.name, err)
	}
	switch revision, err := strconv.ParseUint(o.ResourceVersion, 10, 64); {
	case err != nil || revision > v.revision:
		return inconclusive, nil // opaque versions cannot be compared
	case revision == v.revision && o.UID == v.uid && a.sameMetadata(o, v):
		return match, nil
	}
	return mismatch, nil
}

func (a *asker) listOne(ctx context.Context, v servedVersion, options metav1.ListOptions) (runtime.Object, error) {
	namespace := v.namespace
	if v.name == "" {
		v = placeholder
		if a.namespaced {
			namespace = metav1.NamespaceDefault
		}
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, v.name).String()
	return a.listerFor(namespace).ListWithContext(ctx, options)
}

// currentRevision matches the revision of etcd in an API server's answer to a request for a higher one.
var currentRevision = regexp.MustCompile(`current: (\d+)`)

// etcdRevision returns the revision that etcd has reached. It requests a revision of the far future, because an API
// server takes the refusal from etcd, not from its cache. If the refusal names no revision, a list gives it. The
// API server logs a warning for each such request.
func (a *asker) etcdRevision(ctx context.Context) (uint64, error) {
	_, err := a.listOne(ctx, servedVersion{}, metav1.ListOptions{
		ResourceVersion: strconv.FormatInt(math.MaxInt64, 10), ResourceVersionMatch: metav1.ResourceVersionMatchExact,
	})
	if kube.IsFutureRevision(err) {
		if found := currentRevision.FindStringSubmatch(err.Error()); found != nil && found[1] != "0" {
			return strconv.ParseUint(found[1], 10, 64)
		}
	}
	return a.listRevision(ctx)
}

// listRevision returns the present revision of a list, 0 if that is no number.
func (a *asker) listRevision(ctx context.Context) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	list, err := a.listerFor("").ListWithContext(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return 0, fmt.Errorf("list %s to get its resource version: %w", a.name, err)
	}
	metadata, err := meta.ListAccessor(list)
	if err != nil {
		return 0, err
	}
	revision, err := strconv.ParseUint(metadata.GetResourceVersion(), 10, 64)
	if err != nil {
		return 0, nil // opaque versions belong to no etcd that other streams share
	}
	return revision, nil
}

// uncached reports whether lists certainly come from etcd. Etcd refuses a future version at once. A cache waits for
// it first, and then the server says to retry.
func (a *asker) uncached(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, uncachedTimeout)
	defer cancel()
	_, err := a.listerFor("").ListWithContext(ctx, metav1.ListOptions{
		Limit: 1, ResourceVersion: strconv.FormatInt(math.MaxInt64, 10), ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
	})
	var status apierrors.APIStatus
	return kube.IsFutureRevision(err) && errors.As(err, &status) && status.Status().Details != nil && status.Status().Details.RetryAfterSeconds == 0
}
