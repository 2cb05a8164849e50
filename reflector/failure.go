package reflector

import (
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kuberewind/kuberewind/delta"
)

// failureKind says what follows from an error that ends a list or a watch.
type failureKind int

const (
	// transientFailure: try again at the same place.
	transientFailure failureKind = iota
	// storeFailure: the store did not accept something; the position stays.
	storeFailure
	// deniedFailure: the server refuses the resource; ask again slowly.
	deniedFailure
	// poisonFailure: something at this place of the stream cannot be served or
	// understood; if it stays so, only a list leads past it.
	poisonFailure
	// unusableFailure: a list that cannot be understood or continued.
	unusableFailure
)

// failure is an error whose kind was known where it arose.
type failure struct {
	kind failureKind
	err  error
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

var (
	// errShortWatch is a watch that ended at once and empty-handed: opening the
	// next one without a pause would be a busy loop.
	errShortWatch = errors.New("watch ended within a second without an event")
	// errSilent is a watch that sent bookmarks once and now sends nothing, or
	// that does not say what is known to have happened.
	errSilent = errors.New("watch fell silent")
)

// kindOf classifies an error, except that a watch's expiry is handled before.
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

// inStream gives the failure that an ERROR event stands for. Refusals and
// overload are what they would be as an answer to a request; anything else may
// be due to the event that should have come in its stead.
func inStream(err error) error {
	if isExpired(err) || isBusy(err) || deniedCause(err) != "" {
		return err
	}
	return &failure{kind: poisonFailure, err: err}
}

// isExpired reports 410. Servers before 1.18 sent reason Gone, later ones send
// Expired (client-go's reflector accepts both as well).
func isExpired(err error) bool {
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err)
}

// isBusy reports that the server is overloaded or not ready: that says nothing
// about the place in the stream.
func isBusy(err error) bool {
	return apierrors.IsTooManyRequests(err) || apierrors.IsServiceUnavailable(err) ||
		apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err)
}

// isClientError reports that the server understood the request and rejects it.
func isClientError(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || isBusy(err) || isExpired(err) {
		return false
	}
	code := status.Status().Code
	return code >= http.StatusBadRequest && code < http.StatusInternalServerError
}

// isRefusal reports 401 and 403.
func isRefusal(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err)
}

// deniedCause names the cause for which a resource is denied, "" if it is not.
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
