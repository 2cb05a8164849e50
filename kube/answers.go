package kube

import (
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// IsAhead says that etcd refuses a revision that is to come; older API servers hand on its own words.
func IsAhead(err error) bool {
	return apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge) ||
		err != nil && strings.Contains(err.Error(), "required revision is a future revision")
}

// HasForgotten is what a server answers that has forgotten, or has no such lists, and will not be able to tell later either.
func HasForgotten(err error) bool {
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || apierrors.IsBadRequest(err) || apierrors.IsInvalid(err) ||
		apierrors.IsMethodNotSupported(err) || apierrors.IsNotAcceptable(err)
}

// SaysNothing is what a server answers that has forgotten, refuses, or has no such lists, as some aggregated ones: the watch will tell. One
// that is too busy, or not there, is asked again.
func SaysNothing(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && !apierrors.IsTooManyRequests(err) && !apierrors.IsServiceUnavailable(err) &&
		!apierrors.IsTimeout(err) && !apierrors.IsServerTimeout(err)
}
