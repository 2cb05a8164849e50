package kube

import (
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// IsFutureRevision reports whether etcd refused a revision that it has not reached. Older API servers forward etcd's own words.
func IsFutureRevision(err error) bool {
	return apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge) ||
		err != nil && strings.Contains(err.Error(), "required revision is a future revision")
}

// IsUnanswerable reports whether a server can never answer the request: it has compacted the revision, or it does not support
// such lists.
func IsUnanswerable(err error) bool {
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || apierrors.IsBadRequest(err) || apierrors.IsInvalid(err) ||
		apierrors.IsMethodNotSupported(err) || apierrors.IsNotAcceptable(err)
}

// IsPermanentRefusal reports whether a server's answer is a permanent refusal. The server compacted the revision, forbids the
// request, or does not support such lists. Some aggregated servers support none. If a server is too busy or unavailable, a
// retry can succeed.
func IsPermanentRefusal(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && !apierrors.IsTooManyRequests(err) && !apierrors.IsServiceUnavailable(err) &&
		!apierrors.IsTimeout(err) && !apierrors.IsServerTimeout(err)
}
