package jsonbody_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kuberewind/kuberewind/internal/jsonbody"
)

func TestABodyMustBeOneObjectWithKnownFields(t *testing.T) {
	for body, says := range map[string]string{
		`{"name": "a"}`: "", `{}`: "",
		``: `send a JSON object such as {"name": "x"}: unexpected end`, `[]`: "such as", `{}{}`: "such as", `{"name": 1}`: "such as",
		`{"Name": "a"}`: `unknown field "Name"`, `{"name": "a", "name": "b"}`: `duplicate field "name"`,
	} {
		var got struct {
			Name string `json:"name"`
		}
		err := jsonbody.Read(httptest.NewRecorder(), httptest.NewRequest(http.MethodPut, "/", strings.NewReader(body)), 100, `{"name": "x"}`, &got)
		if says == "" {
			require.NoError(t, err, body)
			continue
		}
		require.True(t, apierrors.IsBadRequest(err), body)
		require.ErrorContains(t, err, says, body)
	}
}

func TestATruncatedOrTooLargeBodyIsRejected(t *testing.T) {
	r := httptest.NewRequest(http.MethodPut, "/", strings.NewReader(`{"name": "`+strings.Repeat("a", 100)+`"}`))
	err := jsonbody.Read(httptest.NewRecorder(), r, 100, "{}", &struct{}{})
	require.True(t, apierrors.IsRequestEntityTooLargeError(err), err)
	require.ErrorContains(t, err, "more than 100 bytes")
	err = jsonbody.Read(httptest.NewRecorder(), httptest.NewRequest(http.MethodPut, "/", iotest.ErrReader(errors.New("cut off"))), 100, "{}", &struct{}{})
	require.True(t, apierrors.IsBadRequest(err), err)
	require.ErrorContains(t, err, "cut off")
}

func TestAWrongMethodGetsTheAllowedMethods(t *testing.T) {
	w := httptest.NewRecorder()
	err := jsonbody.NotAllowed(w, httptest.NewRequest(http.MethodPatch, "/", nil), schema.GroupResource{Resource: "sessions"}, "GET, PUT")
	require.True(t, apierrors.IsMethodNotSupported(err), err)
	require.EqualError(t, err, "PATCH is not supported here; use GET, PUT")
	require.Equal(t, "GET, PUT", w.Header().Get("Allow"))
}
