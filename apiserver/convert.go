package apiserver

import (
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kubernetes/pkg/api/legacyscheme"

	"github.com/kuberewind/kuberewind/apiserver/internal/state"
)

// convert appends an object in the requested version. If the object was recorded in that version, its text does not change.
func (s *served) convert(dst []byte, e *state.Entry) ([]byte, error) {
	version := s.Kind.GroupVersion()
	if e.APIVersion == version.String() {
		return state.Whole(dst, e.APIVersion, s.Kind.Kind, e.Body), nil
	}
	from, err := schema.ParseGroupVersion(e.APIVersion)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	if !s.typed || !legacyscheme.Scheme.Recognizes(from.WithKind(s.Kind.Kind)) {
		if from.Group != version.Group || s.typed || s.webhook() {
			return nil, s.unconverted(e)
		}
		return state.Whole(dst, version.String(), s.Kind.Kind, e.Body), nil // without a webhook, versions of a custom resource differ only in apiVersion
	}
	// Convert through the internal version, as the API server does. Versions of two groups, such as those of Events, share only that.
	object, err := runtime.Decode(legacyscheme.Codecs.UniversalDecoder(), e.Doc(s.Kind.Kind))
	if err != nil {
		return nil, s.unconverted(e)
	}
	text, err := runtime.Encode(legacyscheme.Codecs.LegacyCodec(version), object)
	if err != nil {
		return nil, s.unconverted(e)
	}
	for len(text) > 0 && text[len(text)-1] == '\n' {
		text = text[:len(text)-1]
	}
	return append(dst, text...), nil
}

func (s *served) unconverted(e *state.Entry) error {
	return apierrors.NewGenericServerResponse(http.StatusNotFound, "get", s.GroupResource(), e.Name,
		fmt.Sprintf("it was recorded in %s, and cannot be converted to %s: request the recorded version", e.APIVersion, s.Kind.GroupVersion()), 0, false)
}
