package jsonbody

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"
)

// Read decodes the body of a request of at most limit bytes. The error is the answer to the client, and contains the
// example.
func Read(w http.ResponseWriter, r *http.Request, limit int64, example string, into any) error {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("the body has more than %d bytes", limit))
	}
	if err == nil {
		var faults []error
		faults, err = kjson.UnmarshalStrict(body, into)
		err = errors.Join(err, errors.Join(faults...))
	}
	if err != nil {
		return apierrors.NewBadRequest(fmt.Sprintf("the body is invalid: send a JSON object such as %s: %v", example, err))
	}
	return nil
}

// NotAllowed returns the answer to a request whose method is not allowed.
func NotAllowed(w http.ResponseWriter, r *http.Request, resource schema.GroupResource, allowed string) error {
	w.Header().Set("Allow", allowed)
	err := apierrors.NewMethodNotSupported(resource, strings.ToLower(r.Method))
	err.ErrStatus.Message = fmt.Sprintf("%.20s is not supported here; use %s", r.Method, allowed)
	return err
}
