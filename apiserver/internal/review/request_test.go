package review_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/kuberewind/kuberewind/apiserver/internal/review"
)

func cut(text string) (string, string) {
	before, after, _ := strings.Cut(text, " ")
	return before, after
}

func rulesIn(namespace string) *authorizationv1.SelfSubjectRulesReview {
	return &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace}}
}

func (w *world) rules(t *testing.T, as rest.ImpersonationConfig, namespace string) authorizationv1.SubjectRulesReviewStatus {
	t.Helper()
	answer, err := w.client(t, as).AuthorizationV1().SelfSubjectRulesReviews().Create(t.Context(), rulesIn(namespace), metav1.CreateOptions{})
	require.NoError(t, err)
	return answer.Status
}

func (w *world) whoami(t *testing.T, as rest.ImpersonationConfig) authenticationv1.UserInfo {
	t.Helper()
	answer, err := w.client(t, as).AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	require.NoError(t, err)
	return answer.Status.UserInfo
}

func TestOnlyThePostOfAReviewIsHandled(t *testing.T) {
	server := review.New(nil, review.Options{})
	for request, handled := range map[string]bool{
		"POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews":                              true,
		"POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews?fieldManager=x":               true,
		"POST /apis/authorization.k8s.io/v1beta1/selfsubjectaccessreviews":                         true,
		"POST /apis/authorization.k8s.io/v1/selfsubjectrulesreviews":                               true,
		"POST /apis/authorization.k8s.io/v1/subjectaccessreviews":                                  true,
		"POST /apis/authorization.k8s.io/v1/namespaces/shop/localsubjectaccessreviews":             true,
		"POST /apis/authentication.k8s.io/v1/selfsubjectreviews":                                   true,
		"POST /apis/authentication.k8s.io/v1alpha1/selfsubjectreviews":                             true,
		"POST /apis/authorization.k8s.io/v2/selfsubjectaccessreviews":                              false,
		"POST /apis/authorization.k8s.io/v1alpha1/selfsubjectaccessreviews":                        false,
		"POST /apis/authorization.k8s.io/__internal/selfsubjectaccessreviews":                      false,
		"POST /apis/authorization.k8s.io/v1/localsubjectaccessreviews":                             false,
		"POST /apis/authorization.k8s.io/v1/namespaces//localsubjectaccessreviews":                 false,
		"POST /apis/authorization.k8s.io/v1/namespaces/shop/selfsubjectaccessreviews":              false,
		"POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews/name":                         false,
		"POST /apis/authentication.k8s.io/v1/tokenreviews":                                         false,
		"POST /api/v1/namespaces/shop/pods":                                                        false,
		"POST /":                                                                                   false,
		"GET /apis/authorization.k8s.io/v1/selfsubjectaccessreviews":                               false,
		"DELETE /apis/authorization.k8s.io/v1/selfsubjectaccessreviews":                            false,
		"POST /clusters/x/at/seq:1/apis/authorization.k8s.io/v1/selfsubjectaccessreviews":          false,
		"POST /apis/authorization.k8s.io/v1/namespaces/shop/localsubjectaccessreviews/another/one": false,
	} {
		method, path := cut(request)
		require.Equal(t, handled, server.Handles(httptest.NewRequest(method, path, nil)), request)
	}
}

func TestAVersionThatTheClusterDidNotServeIsNotHandled(t *testing.T) {
	server := review.New(nil, review.Options{Served: func(r schema.GroupVersionResource) bool { return r.Version != "v1" }})
	require.False(t, server.Handles(httptest.NewRequest(http.MethodPost, "/apis/authentication.k8s.io/v1/selfsubjectreviews", nil)))
	require.True(t, server.Handles(httptest.NewRequest(http.MethodPost, "/apis/authentication.k8s.io/v1beta1/selfsubjectreviews", nil)))
}

func TestImpersonationIsRecognized(t *testing.T) {
	for headers, want := range map[string]bool{
		"":                               false,
		"Authorization: Bearer x":        false,
		"Impersonate-User: jane":         true,
		"impersonate-user: jane":         true,
		"Impersonate-User: ":             false,
		"Impersonate-Group: auditors":    true,
		"Impersonate-Uid: 7":             true,
		"Impersonate-Extra-Scopes: view": true,
		"Impersonate-User: jane; Impersonate-Group: auditors": true,
	} {
		r := httptest.NewRequest(http.MethodGet, "/api/v1/pods", nil)
		for header := range strings.SplitSeq(headers, "; ") {
			if name, value, ok := strings.Cut(header, ": "); ok {
				r.Header.Add(name, value)
			}
		}
		require.Equal(t, want, review.Impersonates(r), headers)
	}
}

func TestBadImpersonationIsRefused(t *testing.T) {
	w := newWorld(t, policy)
	const whoami, sar = "/apis/authentication.k8s.io/v1/selfsubjectreviews", "/apis/authorization.k8s.io/v1/subjectaccessreviews"
	code, _, text := post(t, w.url+whoami, "application/json", "{}", "Impersonate-Group", "auditors")
	require.Equal(t, http.StatusBadRequest, code)
	require.Contains(t, text, `"reason":"BadRequest"`)
	code, _, text = post(t, w.url+sar, "application/json", `{"spec":{"user":"jane","nonResourceAttributes":{"verb":"get","path":"/"}}}`, "Impersonate-User", "ada")
	require.Equal(t, http.StatusForbidden, code)
	require.Contains(t, text, "a SubjectAccessReview names its subject in spec: send it without Impersonate headers")
	require.Zero(t, w.reads)
}

func TestABodyOverOneMebibyteIsRefused(t *testing.T) {
	w := newWorld(t, "")
	const path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
	body := func(size int) string {
		const begin, end = `{"spec":{"resourceAttributes":{"verb":"get","name":"`, `"}}}`
		return begin + strings.Repeat("x", size-len(begin)-len(end)) + end
	}
	code, _, text := post(t, w.url+path, "application/json", body(1<<20))
	require.Equal(t, http.StatusCreated, code, text)
	code, _, text = post(t, w.url+path, "application/json", body(1<<20+1))
	require.Equal(t, http.StatusRequestEntityTooLarge, code)
	require.Contains(t, text, `"message":"Request entity too large: limit is 1048576"`)
	require.Contains(t, text, `"reason":"RequestEntityTooLarge"`)
}

func TestAReviewWithANameIsInvalid(t *testing.T) {
	w := newWorld(t, "")
	code, _, text := post(t, w.url+"/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "application/json",
		`{"metadata":{"name":"x"},"spec":{"resourceAttributes":{"verb":"get"}}}`)
	require.Equal(t, http.StatusUnprocessableEntity, code)
	require.Contains(t, text, `metadata: Invalid value: {\"name\":\"x\"}: must be empty`)
}

func TestARequestWithoutACallerIsRefused(t *testing.T) {
	recorder := httptest.NewRecorder()
	review.New(nil, review.Options{}).ServeHTTP(recorder, httptest.NewRequest(http.MethodPost, "/apis/authentication.k8s.io/v1/selfsubjectreviews", strings.NewReader("{}")))
	require.Equal(t, http.StatusBadRequest, recorder.Code)
	require.Contains(t, recorder.Body.String(), "no user present on request")
}

func TestARequestThatIsNotHandledIsNotServed(t *testing.T) {
	recorder := httptest.NewRecorder()
	review.New(nil, review.Options{}).ServeHTTP(recorder, httptest.NewRequest(http.MethodPost, "/api/v1/pods", strings.NewReader("{}")))
	require.Equal(t, http.StatusNotFound, recorder.Code)
}
