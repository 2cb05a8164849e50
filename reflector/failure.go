package reflector

import (
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kuberewind/kuberewind/delta"
)

// failureKind is the consequence of an error that ends a list or a watch.
type failureKind int

const (
	// transientFailure: try again at the same place.
	transientFailure failureKind = iota
	// storeFailure: the store rejected something; the position stays.
	storeFailure
	// deniedFailure: the server refuses the resource; try again slowly.
	deniedFailure
	// poisonFailure: the server cannot serve something at this place of the stream, or the reflector cannot read it. If
	// that stays so, only a list leads past it.
	poisonFailure
	// unusableFailure: the reflector cannot read or continue a list.
	unusableFailure
)

// failure is an error with a known kind.
type failure struct {
	kind failureKind
	err  error
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

var (
	// errShortWatch is a watch that ended at once without an event: to open the next one without a pause would be a
	// busy loop.
	errShortWatch = errors.New("watch ended within a second without an event")
	// errSilent is a watch that sent bookmarks once and now sends nothing, or that does not serve changes that are
	// known to have happened.
	errSilent = errors.New("watch fell silent")
)

// kindOf classifies an error. The caller has handled a watch's expiry before.
func kindOf(err error) failureKind {
	if f, ok := errors.AsType[*failure](err); ok {
		return f.kind
	}
	switch {
	case deniedCause(err) != "":
		return deniedFailure
	case isClientError(err):
		return poisonFailure
	default:
		return transientFailure
	}
}

// inStream returns the failure for an ERROR event. Refusals and overload mean the same as in the answer to a request.
// Any other error may be due to the event that should have come instead.
func inStream(err error) error {
	if isExpired(err) || isBusy(err) || deniedCause(err) != "" {
		return err
	}
	return &failure{kind: poisonFailure, err: err}
}

// isExpired reports whether an error is a 410. Servers before 1.18 sent reason Gone, later ones send Expired
// (client-go's reflector accepts both as well).
func isExpired(err error) bool {
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err)
}

// isBusy reports whether the server is overloaded or not ready. Such an error says nothing about the place in the
// stream.
func isBusy(err error) bool {
	return apierrors.IsTooManyRequests(err) || apierrors.IsServiceUnavailable(err) ||
		apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err)
}

// isClientError reports whether the server understood the request and rejects it.
func isClientError(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || isBusy(err) || isExpired(err) {
		return false
	}
	code := status.Status().Code
	return code >= http.StatusBadRequest && code < http.StatusInternalServerError
}

// isRefusal reports whether an error is a 401 or 403.
func isRefusal(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err)
}

// deniedCause returns the cause for which a resource is denied, "" if it is not.
func deniedCause(err error) delta.Cause {
	switch {
	case apierrors.IsForbidden(err):
		return delta.CauseForbidden
	case apierrors.IsUnauthorized(err):
		return delta.CauseUnauthorized
	case apierrors.IsNotFound(err):
		return delta.CauseNotFound
	default:
		return ""
	}
}
