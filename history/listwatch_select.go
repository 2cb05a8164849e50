package history

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kuberewind/kuberewind/patch"
)

// A selection selects the objects of a list or watch.
type selection struct {
	namespace string // "" means all
	labels    labels.Selector
	fields    fields.Selector
}

// newSelection reads the selectors of a request. It refuses unsupported ones as bad requests, as an API server does.
func newSelection(namespace string, options metav1.ListOptions) (s *selection, err error) {
	s = &selection{namespace: namespace}
	if s.labels, err = labels.Parse(options.LabelSelector); err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("label selector %q: %v", options.LabelSelector, err))
	}
	if s.fields, err = fields.ParseSelector(options.FieldSelector); err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("field selector %q: %v", options.FieldSelector, err))
	}
	for _, r := range s.fields.Requirements() {
		if r.Field != "metadata.name" && r.Field != "metadata.namespace" {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("field label not supported: %s: use metadata.name or metadata.namespace", r.Field))
		}
	}
	return s, nil
}

// matches reports whether the selection selects an object. A nil doc is no object.
func (s *selection) matches(namespace, name string, doc patch.Doc) (bool, error) {
	if doc == nil || (s.namespace != "" && s.namespace != namespace) || !s.fields.Matches(fields.Set{"metadata.name": name, "metadata.namespace": namespace}) {
		return false, nil
	}
	if s.labels.Empty() {
		return true, nil
	}
	var pairs labels.Set
	if text, ok := patch.Get(doc, "/metadata/labels"); ok {
		if err := json.Unmarshal(text, &pairs); err != nil {
			return false, fmt.Errorf("the labels of %s: %w", name, err)
		}
	}
	return s.labels.Matches(pairs), nil
}

// gone turns an error into 410 Gone if it says that a resource version is not on record. Reflectors then list again.
func gone(err error) error {
	if errors.Is(err, ErrBeforeRecord) {
		return apierrors.NewResourceExpired(err.Error())
	}
	return err
}

// tooLarge returns the API server's error for a resource version in the future. The play ends at end.
func tooLarge(rv, end string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusGatewayTimeout, Reason: metav1.StatusReasonTimeout,
		Message: fmt.Sprintf("Too large resource version: %s, the play ends at %s", rv, end),
		Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{
			Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version",
		}}},
	}}
}
