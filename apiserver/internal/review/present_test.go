package review_test

import (
	"errors"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/rest"

	"github.com/kuberewind/kuberewind/apiserver/internal/review"
)

var (
	errNotYours = errors.New("not yours to read")
	nobody      rest.ImpersonationConfig
)

func TestTheCallerMayReadAndNotWrite(t *testing.T) {
	w := newWorld(t, "")
	for _, verb := range []string{"get", "list", "watch"} {
		require.Equal(t, authorizationv1.SubjectAccessReviewStatus{Allowed: true, Reason: "the past is readable through this server"},
			w.canI(t, nobody, authorizationv1.ResourceAttributes{Verb: verb, Namespace: "shop", Group: "apps", Resource: "deployments"}), verb)
	}
	for _, verb := range []string{"create", "update", "patch", "delete", "deletecollection", "impersonate", "escalate", "bind", "use", "*", "", "GET"} {
		require.Equal(t, authorizationv1.SubjectAccessReviewStatus{Denied: true, Reason: "the past is read-only"},
			w.canI(t, nobody, authorizationv1.ResourceAttributes{Verb: verb, Namespace: "shop", Group: "apps", Resource: "deployments"}), verb)
	}
	require.Equal(t, []string{"ada get deployments.apps in shop", "ada list deployments.apps in shop", "ada watch deployments.apps in shop"}, w.questions(),
		"whether the caller may read is asked; writes are not")
	require.Zero(t, w.reads, "the caller's present rights do not come from the record")
}

func TestSubresourcesAreDeniedWithWhatTheRecordHasInstead(t *testing.T) {
	w := newWorld(t, "")
	for subresource, reason := range map[string]string{
		"log":         "logs are not on record: see the Pod's Events, and its versions (replay log pod/NAME)",
		"exec":        "a container of the past runs no command: see the Pod's versions (replay log pod/NAME)",
		"attach":      "a container of the past runs no command: see the Pod's versions (replay log pod/NAME)",
		"portforward": "a Pod or Service of the past takes no connection: see its versions (replay log)",
		"proxy":       "a Pod or Service of the past takes no connection: see its versions (replay log)",
		"approval":    "this server does not serve this subresource: read the object itself",
	} {
		status := w.canI(t, nobody, authorizationv1.ResourceAttributes{Verb: "get", Namespace: "shop", Resource: "pods", Subresource: subresource})
		require.Equal(t, authorizationv1.SubjectAccessReviewStatus{Denied: true, Reason: reason}, status, subresource)
	}
	require.Equal(t, "a container of the past runs no command: see the Pod's versions (replay log pod/NAME)",
		w.canI(t, nobody, authorizationv1.ResourceAttributes{Verb: "create", Namespace: "shop", Resource: "pods", Subresource: "exec"}).Reason)
	require.Equal(t, "the past is read-only",
		w.canI(t, nobody, authorizationv1.ResourceAttributes{Verb: "create", Namespace: "shop", Resource: "pods", Subresource: "eviction"}).Reason)
	require.Empty(t, review.Instead("status"))
	require.Empty(t, w.questions())
	for _, subresource := range []string{"status", "scale"} {
		asked := authorizationv1.ResourceAttributes{Verb: "get", Namespace: "shop", Group: "apps", Resource: "deployments", Subresource: subresource}
		require.Equal(t, authorizationv1.SubjectAccessReviewStatus{Allowed: true, Reason: "the past is readable through this server"}, w.canI(t, nobody, asked), subresource)
		asked.Verb = "update"
		require.Equal(t, "the past is read-only", w.canI(t, nobody, asked).Reason, subresource)
	}
}

func TestPathsAreAnsweredAsTheyAreServed(t *testing.T) {
	w := newWorld(t, "")
	for path, want := range map[string]authorizationv1.SubjectAccessReviewStatus{
		"get /apis/apps/v1": {Allowed: true, Reason: "the past is readable through this server"},
		"get /metrics":      {Denied: true, Reason: "this server does not serve this path"},
		"post /version":     {Denied: true, Reason: "the past is read-only"},
	} {
		var attributes authorizationv1.NonResourceAttributes
		attributes.Verb, attributes.Path = cut(path)
		answer, err := w.client(t, nobody).AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(),
			&authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{NonResourceAttributes: &attributes}}, metav1.CreateOptions{})
		require.NoError(t, err)
		require.Equal(t, want, answer.Status, path)
	}
	require.Equal(t, []string{"ada get ./apis/apps/v1 in "}, w.questions())
}

func TestACallerWhoMayNotReadIsDenied(t *testing.T) {
	w := newWorld(t, "")
	w.refuse = func(a authorizer.Attributes) error {
		if a.GetResource() == "secrets" {
			return forbidden(a)
		}
		return nil
	}
	status := w.canI(t, nobody, authorizationv1.ResourceAttributes{Verb: "list", Resource: "secrets"})
	require.Equal(t, authorizationv1.SubjectAccessReviewStatus{Denied: true, Reason: "secrets is forbidden: not yours to read"}, status)
	require.True(t, w.canI(t, nobody, authorizationv1.ResourceAttributes{Verb: "list", Resource: "pods"}).Allowed)
}

func TestAFailureOfAuthorizeIsAnErrorAndNoDenial(t *testing.T) {
	w := newWorld(t, "")
	w.refuse = func(authorizer.Attributes) error { return apierrors.NewServiceUnavailable("the live API is away") }
	reviews := w.client(t, nobody).AuthorizationV1()
	_, err := reviews.SelfSubjectAccessReviews().Create(t.Context(), &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "get", Resource: "pods"}}}, metav1.CreateOptions{})
	require.True(t, apierrors.IsServiceUnavailable(err), "%v", err)
	_, err = reviews.SelfSubjectRulesReviews().Create(t.Context(), rulesIn("shop"), metav1.CreateOptions{})
	require.True(t, apierrors.IsServiceUnavailable(err), "%v", err)
	_, err = w.client(t, rest.ImpersonationConfig{UserName: "jane"}).AuthorizationV1().SelfSubjectRulesReviews().Create(t.Context(), rulesIn("shop"), metav1.CreateOptions{})
	require.True(t, apierrors.IsServiceUnavailable(err), "%v", err)
	require.Zero(t, w.reads)
}

func TestWithoutAuthorizeEveryReadIsDenied(t *testing.T) {
	w := newWorld(t, "")
	w.serve(t, review.New(w, review.Options{}))
	status := w.canI(t, nobody, authorizationv1.ResourceAttributes{Verb: "list", Resource: "pods"})
	require.True(t, status.Denied)
	require.Contains(t, status.Reason, "no authorization is set up")
}

func TestTheCallersRulesListWhatTheServerAllows(t *testing.T) {
	w := newWorld(t, "")
	status := w.rules(t, nobody, "shop")
	require.False(t, status.Incomplete)
	require.Empty(t, status.EvaluationError)
	require.Equal(t, []authorizationv1.ResourceRule{
		{Verbs: []string{"create"}, APIGroups: []string{"authorization.k8s.io", "authentication.k8s.io"},
			Resources: []string{"selfsubjectaccessreviews", "selfsubjectrulesreviews", "selfsubjectreviews"}},
		{Verbs: []string{"get", "list", "watch"}, APIGroups: []string{"*"}, Resources: []string{"*"}},
	}, status.ResourceRules)
	require.Len(t, status.NonResourceRules, 1)
	require.Contains(t, status.NonResourceRules[0].NonResourceURLs, "/openapi/*")
	for _, rule := range status.ResourceRules[0].Resources {
		group := "authorization.k8s.io"
		if rule == "selfsubjectreviews" {
			group = "authentication.k8s.io"
		}
		require.True(t, w.canI(t, nobody, authorizationv1.ResourceAttributes{Verb: "create", Group: group, Resource: rule}).Allowed, rule)
	}
}

func TestRulesOfACallerWhoMayNotReadAllAreIncomplete(t *testing.T) {
	w := newWorld(t, "")
	w.refuse = func(a authorizer.Attributes) error {
		if a.GetVerb() == "watch" {
			return forbidden(a)
		}
		return nil
	}
	status := w.rules(t, nobody, "shop")
	require.True(t, status.Incomplete)
	require.Contains(t, status.EvaluationError, "the caller may not watch every resource")
	require.Equal(t, []string{"get", "list"}, status.ResourceRules[1].Verbs)
	require.Equal(t, []string{"ada get *.* in shop", "ada list *.* in shop", "ada watch *.* in shop"}, w.questions())
}

func TestASubjectReviewNamesTheCallerInEachVersion(t *testing.T) {
	w := newWorld(t, "")
	for _, version := range []string{"v1", "v1beta1", "v1alpha1"} {
		code, header, text := post(t, w.url+"/apis/authentication.k8s.io/"+version+"/selfsubjectreviews", "application/json",
			`{"kind":"SelfSubjectReview","apiVersion":"authentication.k8s.io/`+version+`"}`)
		require.Equal(t, http.StatusCreated, code, text)
		require.Equal(t, "application/json", header.Get("Content-Type"))
		require.Contains(t, text, `"apiVersion":"authentication.k8s.io/`+version+`"`)
		require.Contains(t, text, `"status":{"userInfo":{"username":"ada","uid":"7","groups":["auditors","system:authenticated"],"extra":{"team":["red"]}}}`)
	}
	require.Equal(t, authenticationv1.UserInfo{Username: "ada", UID: "7", Groups: ada.Groups, Extra: map[string]authenticationv1.ExtraValue{"team": {"red"}}}, w.whoami(t, nobody))
}
