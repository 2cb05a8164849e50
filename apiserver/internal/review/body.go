package review

import (
	"encoding/hex"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalscheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/handlers/negotiation"
	"k8s.io/kubernetes/pkg/api/legacyscheme"

	"github.com/kuberewind/kuberewind/apiserver/internal/wire"
)

// maxBody bounds a body. A review has a few hundred bytes.
const maxBody = 1 << 20

// decode reads the body into an object of the kind's internal version. It refuses the same bodies as a real server, with
// the same texts.
func decode(w http.ResponseWriter, r *http.Request, target target, into runtime.Object) (runtime.Object, error) {
	serializer, err := negotiation.NegotiateInputSerializer(r, false, legacyscheme.Codecs)
	if err != nil {
		return nil, err
	}
	body, err := wire.ReadBody(r, maxBody)
	if err != nil {
		return nil, err
	}
	directive, err := fieldValidation(r)
	if err != nil {
		return nil, err
	}
	format := runtime.Decoder(serializer.StrictSerializer)
	if directive == metav1.FieldValidationIgnore {
		format = serializer.Serializer
	}
	internal := schema.GroupVersion{Group: target.resource.Group, Version: runtime.APIVersionInternal}
	expected := target.gvk()
	object, gvk, err := legacyscheme.Codecs.DecoderToVersion(format, internal).Decode(body, &expected, into)
	if object != nil && directive == metav1.FieldValidationWarn {
		err = warn(w, err)
	}
	if err != nil {
		return nil, undecodable(err, target.kind, gvk, body)
	}
	if gvk.GroupVersion() != expected.GroupVersion() {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the API version in the data (%s) does not match the expected API version (%s)",
			gvk.GroupVersion(), expected.GroupVersion()))
	}
	return object, nil
}

// warn adds a warning for each unknown or duplicate field, and returns any other error.
func warn(w http.ResponseWriter, err error) error {
	strict, ok := runtime.AsStrictDecodingError(err)
	if !ok {
		return err
	}
	for _, problem := range strict.Errors() {
		wire.Warn(w, problem.Error())
	}
	return nil
}

// fieldValidation returns how to handle unknown and duplicate fields of the body: Ignore, Warn or Strict.
func fieldValidation(r *http.Request) (string, error) {
	var options metav1.CreateOptions
	if err := metainternalscheme.ParameterCodec.DecodeParameters(r.URL.Query(), metav1.SchemeGroupVersion, &options); err != nil {
		return "", apierrors.NewBadRequest(err.Error())
	}
	if problems := validation.ValidateCreateOptions(&options); len(problems) > 0 {
		return "", apierrors.NewInvalid(metav1.SchemeGroupVersion.WithKind("CreateOptions").GroupKind(), "", problems)
	}
	if options.FieldValidation == "" {
		return metav1.FieldValidationWarn, nil
	}
	return options.FieldValidation, nil
}

func undecodable(err error, kind string, gvk *schema.GroupVersionKind, body []byte) error {
	if gvk != nil && gvk.Kind != "" {
		return apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: %v", gvk.Kind, gvk.Version, kind, err))
	}
	return apierrors.NewBadRequest(fmt.Sprintf("the object provided is unrecognized (must be of type %s): %v (%s)", kind, err, begin(body)))
}

// begin returns the first bytes of a body, in hexadecimal unless it looks like JSON.
func begin(body []byte) string {
	const most = 30
	if len(body) == 0 {
		return "<empty>"
	}
	more := ""
	if len(body) > most {
		body, more = body[:most], " ..."
	}
	if body[0] == '{' {
		return string(body) + more
	}
	return hex.EncodeToString(body) + more
}
