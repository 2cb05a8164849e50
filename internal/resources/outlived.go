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

// How long it is asked whether objects have outlived a definition.
const (
	// refusedPatience is for a server that answers something else. A stream may fail for as long before that is reported.
	refusedPatience = 30 * time.Second
	// askedPatience is for all servers, also one that does not answer. By default, etcd forgets after about as long.
	askedPatience = 10 * time.Minute
)

// asking is what has come of it so far, under one definition.
type asking struct {
	refused, asked waiting
	// answered is for which resource version there was an answer, and left is that. It counts until the stream is launched: what waits for the database meanwhile
	// asks once, as etcd forgets.
	answered string
	left     bool
}

// over reports whether nobody will tell.
func (a *asking) over(under types.UID, err error) bool {
	forgotten := a.asked.over(under, askedPatience)
	if !kube.SaysNothing(err) {
		a.refused = waiting{}
		return forgotten
	}
	return a.refused.over(under, refusedPatience) || forgotten
}

// objects finds out whether objects of a resource may be alive at a version from which the stream would go on as if there were
// none. It fails while that may still be answered. If no answer comes, the stream is listed, and a gap says what is not known.
func (h *Handler) objects(ctx context.Context, resource kube.Resource, at string) (lifecycle.Objects, error) {
	left, err := h.outlived(ctx, resource, at)
	switch {
	case err != nil:
		return lifecycle.NotAsked, err
	case left:
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
	if a.answered == at {
		return a.left, nil
	}
	left, err := h.objectsAt(ctx, resource, at)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return false, ctx.Err()
	case apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || kube.IsAhead(err):
		h.log.Info("nobody knows any more whether objects have outlived a definition", "resource", resource.String(), "resource_version", at, "error", err)
		left = true // It may also be that etcd was put back to before it.
	case !a.over(resource.DefinitionUID, err):
		// Not to be taken for an error of the database, or for an end of the recorder.
		return false, fmt.Errorf("look for objects of %s that have outlived a definition before: %v", resource, err) //nolint:errorlint // see above
	default:
		h.log.Warn("whether objects have outlived a definition is not answered", "resource", resource.String(), "resource_version", at, "error", err)
		return true, nil
	}
	a.answered, a.left = at, left
	return left, nil
}

// askTimeout bounds the question: a request that nobody answers must not hold others up.
const askTimeout = 10 * time.Second

// aheadTimeout is for a question that etcd answers at once.
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
	// A cache waits for a version that is to come, and has it asked for again. What asks for a name comes from etcd, which says so at once.
	if resource.Namespaced {
		lister = h.options.Client.ListWatch(resource, metav1.NamespaceDefault)
	}
	options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, "any").String()
	in, cancel = context.WithTimeout(ctx, aheadTimeout)
	defer cancel()
	if _, named := lister.Page(in, options); kube.IsAhead(named) {
		return false, named
	}
	return false, err
}
