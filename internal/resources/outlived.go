package resources

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kuberewind/kuberewind/internal/lifecycle"
	"github.com/kuberewind/kuberewind/kube"
)

// These constants bound how long the Handler asks whether objects of an earlier definition still exist.
const (
	// refusedPatience is for a server that refuses, and is neither busy nor away. A stream may also fail for this long before a gap reports it.
	refusedPatience = 30 * time.Second
	// askedPatience is for all servers, including one that does not answer. By default, etcd compacts after about the same time.
	askedPatience = 10 * time.Minute
)

// over reports whether the Handler stops asking. An error that says that the server is busy or away counts only for askedPatience.
func (a *asking) over(under types.UID, err error) bool {
	forgotten := a.asked.over(under, askedPatience)
	if !kube.IsPermanentRefusal(err) {
		a.refused = waiting{}
		return forgotten
	}
	return a.refused.over(under, refusedPatience) || forgotten
}

// objects returns whether objects of a resource may exist at a resource version from which the stream would start as if there were none. It
// returns an error while an answer is still possible. After the patience it returns Possible, so that the resource is listed and a gap
// marks the unknown time.
func (h *Handler) objects(ctx context.Context, resource kube.Resource, at string) (lifecycle.Objects, error) {
	found, err := h.outlived(ctx, resource, at)
	switch {
	case err != nil:
		return lifecycle.NotAsked, err
	case found:
		return lifecycle.Possible, nil
	}
	return lifecycle.None, nil
}

func (h *Handler) outlived(ctx context.Context, resource kube.Resource, at string) (bool, error) {
	gr := resource.GroupResource()
	a := h.asking[gr]
	if a == nil || a.asked.under != resource.DefinitionUID {
		a = &asking{asked: waiting{under: resource.DefinitionUID}}
		h.asking[gr] = a
	}
	if a.answeredAt == at {
		return a.outlived, nil
	}
	found, err := h.objectsAt(ctx, resource, at)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return false, ctx.Err()
	case apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || kube.IsFutureRevision(err):
		h.log.Info("cannot check for objects of an earlier definition: etcd does not have the revision; listing the resource", "resource", resource.String(), "resource_version", at, "error", err)
		found = true // etcd has compacted the revision, or was restored to an earlier one.
	case !a.over(resource.DefinitionUID, err):
		// Not wrapped: callers would take it for an error of the database, or for the end of the recorder.
		return false, fmt.Errorf("check for objects of %s that outlived an earlier definition: %v", resource, err) //nolint:errorlint // see above
	default:
		h.log.Warn("the check for objects of an earlier definition got no answer; listing the resource", "resource", resource.String(), "resource_version", at, "error", err)
		return true, nil
	}
	a.answeredAt, a.outlived = at, found
	return found, nil
}

// askTimeout bounds the request, so that a server that does not answer delays no other resource for long.
const askTimeout = 10 * time.Second

// aheadTimeout bounds a request that etcd answers at once.
const aheadTimeout = 3 * time.Second

// objectsAt reports whether there are objects of a resource at a resource version.
func (h *Handler) objectsAt(ctx context.Context, resource kube.Resource, version string) (bool, error) {
	lister := h.options.Client.ListWatch(resource, "")
	options := metav1.ListOptions{Limit: 1, ResourceVersion: version, ResourceVersionMatch: metav1.ResourceVersionMatchExact}
	in, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	objects, err := lister.Page(in, options)
	if err == nil {
		return len(objects.Items)+len(objects.Undecodable()) > 0, nil
	}
	if in.Err() == nil || ctx.Err() != nil {
		return false, err
	}
	// For a version of the future, a watch cache waits, and its error makes the client retry. A request for one name goes to etcd, which
	// reports a future version at once.
	if resource.Namespaced {
		lister = h.options.Client.ListWatch(resource, metav1.NamespaceDefault)
	}
	options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, "any").String()
	in, cancel = context.WithTimeout(ctx, aheadTimeout)
	defer cancel()
	if _, named := lister.Page(in, options); kube.IsFutureRevision(named) {
		return false, named
	}
	return false, err
}

const mayOutlive = "objects of an earlier definition may exist under the new one: listing the resource"
