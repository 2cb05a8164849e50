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
	// askTimeout bounds each question: a request that nobody answers must not hold the streams up.
	askTimeout = 10 * time.Second
	// uncachedTimeout is less than the three seconds for which a watch cache waits for a version to come. Etcd answers at
	// once.
	uncachedTimeout = 2 * time.Second
)

// asker asks a server about one resource, and through it the etcd that keeps it. It needs no lock.
type asker struct {
	name       string // as logs say it
	namespaced bool
	canonical  cache.TransformFunc // brings an object into the form in which it is recorded
	lister     atomic.Pointer[func(namespace string) cache.ListerWithContext]
}

// in gives what lists the resource in a namespace; an empty one means all.
func (a *asker) listerFor(namespace string) cache.ListerWithContext {
	return (*a.lister.Load())(namespace)
}

// watcher gives what watches the resource, if the server can be watched.
func (a *asker) watcher() (server cache.WatcherWithContext, watches bool) {
	server, watches = a.listerFor("").(cache.WatcherWithContext)
	return server, watches
}

// sight is what etcd says of a witness.
type lookResult int

const (
	inconclusive lookResult = iota // etcd has forgotten, or the server does not ask it
	match                          // the object was as it was served
	mismatch                       // it was not, or not there
	future                         // etcd has not come to that revision
)

// nobody stands for an object where none is known: any name will do to ask where etcd is.
var placeholder = servedVersion{name: "kuberewind"}

// look asks what etcd had at a revision, for which the witness is the newest version of its object. A list of one object by name at an
// exact revision is answered by etcd, whatever the API server's cache holds: that has no such lists.
func (a *asker) look(ctx context.Context, v servedVersion, revision uint64) (lookResult, error) {
	result, err := a.lookUntilAnswered(ctx, v, revision)
	if kube.SaysNothing(err) {
		return inconclusive, nil
	}
	return result, err
}

// lookUntilAnswered is look for who can ask again: what a server may say while it starts, or has no etcd, is no answer.
func (a *asker) lookUntilAnswered(ctx context.Context, v servedVersion, revision uint64) (lookResult, error) {
	list, err := a.listOne(ctx, v, metav1.ListOptions{
		ResourceVersion: strconv.FormatUint(revision, 10), ResourceVersionMatch: metav1.ResourceVersionMatchExact,
	})
	switch {
	case kube.IsAhead(err):
		return future, nil
	case kube.HasForgotten(err):
		return inconclusive, nil
	case err != nil:
		return inconclusive, fmt.Errorf("look for what %s was at resource version %d: %w", a.name, revision, err)
	}
	metadata, err := meta.ListAccessor(list)
	if err != nil || metadata.GetResourceVersion() != strconv.FormatUint(revision, 10) {
		return inconclusive, err
	}
	if odd, ok := list.(interface{ Undecodable() []error }); ok && len(odd.Undecodable()) > 0 {
		return inconclusive, nil // Something of that name is there.
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

// findEnd is what a list says of the end of an object. That nothing is there proves nothing: another history may have nothing
// of that name either. Some aggregated servers serve the end with the version that was the last.
func (a *asker) findEnd(list runtime.Object, v servedVersion) lookResult {
	if meta.LenList(list) == 0 {
		return inconclusive
	}
	if last, err := a.find(list, v); last || err != nil {
		return inconclusive
	}
	return mismatch
}

// find reports whether a list holds what was served.
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

// lookNow is look for where etcd has forgotten the revision: what the object is now cannot be older than what was served.
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
		return inconclusive, nil // It may have been deleted since.
	case err != nil:
		return inconclusive, fmt.Errorf("look for what is newest of %s: %w", a.name, err)
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

// currentRevision is how an API server says where etcd is, to who asks for more.
var currentRevision = regexp.MustCompile(`current: (\d+)`)

// trueNow is the revision at which etcd is, as an API server says that only knows it from etcd. Those that do not say have it asked for
// with a list. Each such request leaves a warning in the API server's log.
func (a *asker) trueNow(ctx context.Context) (uint64, error) {
	_, err := a.listOne(ctx, servedVersion{}, metav1.ListOptions{
		ResourceVersion: strconv.FormatInt(math.MaxInt64, 10), ResourceVersionMatch: metav1.ResourceVersionMatchExact,
	})
	if kube.IsAhead(err) {
		if found := currentRevision.FindStringSubmatch(err.Error()); found != nil && found[1] != "0" {
			return strconv.ParseUint(found[1], 10, 64)
		}
	}
	return a.now(ctx)
}

// now is the revision that a list says, 0 if it is none.
func (a *asker) now(ctx context.Context) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	list, err := a.listerFor("").ListWithContext(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return 0, fmt.Errorf("ask where %s is: %w", a.name, err)
	}
	metadata, err := meta.ListAccessor(list)
	if err != nil {
		return 0, err
	}
	revision, err := strconv.ParseUint(metadata.GetResourceVersion(), 10, 64)
	if err != nil {
		return 0, nil // opaque versions are nobody else's
	}
	return revision, nil
}

// uncached reports whether lists certainly come from etcd. Etcd says at once that it has not come to a future version. A cache
// waits, and then asks for a retry.
func (a *asker) uncached(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, uncachedTimeout)
	defer cancel()
	_, err := a.listerFor("").ListWithContext(ctx, metav1.ListOptions{
		Limit: 1, ResourceVersion: strconv.FormatInt(math.MaxInt64, 10), ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
	})
	var status apierrors.APIStatus
	return kube.IsAhead(err) && errors.As(err, &status) && status.Status().Details != nil && status.Status().Details.RetryAfterSeconds == 0
}
