package apiserver

import (
	"fmt"
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kuberewind/kuberewind/delta"
)

// wellFormed refuses an invalid resource version, as the API server's storage does.
func wellFormed(rv string) error {
	if _, err := strconv.ParseUint(rv, 10, 64); err != nil {
		return apierrors.NewBadRequest(fmt.Sprintf("invalid resource version: %v", field.Invalid(field.NewPath("resourceVersion"), rv, err.Error())))
	}
	return nil
}

// reached refuses a resource version that the resource had not reached at the instant.
func (c *call) reached(rv, position string) error {
	if err := wellFormed(rv); err != nil {
		return err
	}
	if !delta.Precedes(position, rv) {
		return nil
	}
	refused := &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusGatewayTimeout, Reason: metav1.StatusReasonTimeout,
		Message: fmt.Sprintf("Timeout: Too large resource version: %s, current: %s", rv, position),
		Details: &metav1.StatusDetails{
			Causes:            []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version"}},
			RetryAfterSeconds: 1,
		},
	}}
	if c.at.moving != nil && c.at.moving.end == nil {
		// After a seek backward, clients list from a version above the clock. If the answer had a Retry-After header, client-go's
		// REST client would repeat the request ten times, a second apart. Without it, reflectors list from the start at once.
		refused.ErrStatus.Details.RetryAfterSeconds = 0
	}
	return refused
}
