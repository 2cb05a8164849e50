package review_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/rest"
)

const onlyRBAC = "only RBAC is on record; webhooks, the Node authorizer and the privileges of system:masters are not"

const policy = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: node-reader}
rules:
- {apiGroups: [""], resources: [nodes], verbs: [get, list]}
- {nonResourceURLs: [/metrics], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: auditors-read-nodes}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: node-reader}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: auditors}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: secret-reader, namespace: shop}
rules: [{apiGroups: [""], resources: [secrets], resourceNames: [db], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: secret-reader, namespace: bank}
rules: [{apiGroups: [""], resources: [secrets], verbs: ["*"]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: jane-reads, namespace: shop}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: secret-reader}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: jane}
- {kind: ServiceAccount, name: web}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: dangling, namespace: shop}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: gone}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: otto}]
`

var (
	jane    = rest.ImpersonationConfig{UserName: "jane"}
	getDB   = authorizationv1.ResourceAttributes{Verb: "get", Namespace: "shop", Resource: "secrets", Name: "db"}
	listAll = authorizationv1.ResourceAttributes{Verb: "list", Resource: "nodes"}
)

func TestAnotherSubjectIsAnsweredFromTheRBACOnRecord(t *testing.T) {
	w := newWorld(t, policy)
	require.Equal(t, authorizationv1.SubjectAccessReviewStatus{Allowed: true,
		Reason: `RBAC: allowed by RoleBinding "jane-reads/shop" of Role "secret-reader" to User "jane"; ` + onlyRBAC}, w.canI(t, jane, getDB))
	no := authorizationv1.SubjectAccessReviewStatus{Reason: onlyRBAC}
	bank := getDB
	bank.Namespace = "bank"
	require.Equal(t, no, w.canI(t, jane, bank), "a role applies in the namespace of its binding")
	require.Equal(t, no, w.canI(t, jane, listAll))
	require.True(t, w.canI(t, rest.ImpersonationConfig{UserName: "jane", Groups: []string{"auditors"}}, listAll).Allowed)
	require.True(t, w.canI(t, rest.ImpersonationConfig{UserName: "system:serviceaccount:shop:web"}, getDB).Allowed)
	require.False(t, w.canI(t, rest.ImpersonationConfig{UserName: "system:serviceaccount:bank:web"}, getDB).Allowed)
	masters := w.canI(t, rest.ImpersonationConfig{UserName: "root", Groups: []string{user.SystemPrivilegedGroup}}, listAll)
	require.Equal(t, no, masters, "the record has no privileges without a binding")
}

func TestARoleThatDoesNotExistIsNamedInTheReason(t *testing.T) {
	w := newWorld(t, policy)
	require.Equal(t, authorizationv1.SubjectAccessReviewStatus{Reason: `RBAC: role.rbac.authorization.k8s.io "gone" not found; ` + onlyRBAC},
		w.canI(t, rest.ImpersonationConfig{UserName: "otto"}, getDB))
	require.Equal(t, onlyRBAC+`; role.rbac.authorization.k8s.io "gone" not found`, w.rules(t, rest.ImpersonationConfig{UserName: "otto"}, "shop").EvaluationError)
}

func TestRulesOfAnotherSubjectComeFromTheRecordAndAreIncomplete(t *testing.T) {
	w := newWorld(t, policy)
	require.Equal(t, authorizationv1.SubjectRulesReviewStatus{
		ResourceRules: []authorizationv1.ResourceRule{
			{Verbs: []string{"get", "list"}, APIGroups: []string{""}, Resources: []string{"nodes"}},
			{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"db"}},
		},
		NonResourceRules: []authorizationv1.NonResourceRule{{Verbs: []string{"get"}, NonResourceURLs: []string{"/metrics"}}},
		Incomplete:       true, EvaluationError: onlyRBAC,
	}, w.rules(t, rest.ImpersonationConfig{UserName: "jane", Groups: []string{"auditors"}}, "shop"))
}

func TestASubjectThatTheBodyNamesIsAnsweredFromTheRecord(t *testing.T) {
	w := newWorld(t, policy)
	reviews := w.client(t, nobody).AuthorizationV1()
	spec := authorizationv1.SubjectAccessReviewSpec{User: "jane", ResourceAttributes: &getDB}
	answer, err := reviews.SubjectAccessReviews().Create(t.Context(), &authorizationv1.SubjectAccessReview{Spec: spec}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.True(t, answer.Status.Allowed)
	local, err := reviews.LocalSubjectAccessReviews("shop").Create(t.Context(),
		&authorizationv1.LocalSubjectAccessReview{ObjectMeta: metav1.ObjectMeta{Namespace: "shop"}, Spec: spec}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.True(t, local.Status.Allowed)
	require.Equal(t, "shop", local.Namespace)
	spec.User = "ada"
	answer, err = reviews.SubjectAccessReviews().Create(t.Context(), &authorizationv1.SubjectAccessReview{Spec: spec}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.Equal(t, authorizationv1.SubjectAccessReviewStatus{Reason: onlyRBAC}, answer.Status)
}

func TestTheCallerNeedsTheRightToListRolesAndBindings(t *testing.T) {
	for _, resource := range []string{"roles", "rolebindings", "clusterroles", "clusterrolebindings"} {
		w := newWorld(t, policy)
		w.refuse = func(a authorizer.Attributes) error {
			if a.GetResource() == resource && a.GetAPIGroup() == "rbac.authorization.k8s.io" && a.GetVerb() == "list" && a.GetNamespace() == "" {
				return forbidden(a)
			}
			return nil
		}
		asJane, asAda := w.client(t, jane), w.client(t, nobody).AuthorizationV1()
		_, err := asJane.AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(), &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &getDB}}, metav1.CreateOptions{})
		requireForbidden(t, err, resource)
		_, err = asJane.AuthorizationV1().SelfSubjectRulesReviews().Create(t.Context(), rulesIn("shop"), metav1.CreateOptions{})
		requireForbidden(t, err, resource)
		_, err = asJane.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		requireForbidden(t, err, resource)
		spec := authorizationv1.SubjectAccessReviewSpec{User: "jane", ResourceAttributes: &getDB}
		_, err = asAda.SubjectAccessReviews().Create(t.Context(), &authorizationv1.SubjectAccessReview{Spec: spec}, metav1.CreateOptions{})
		requireForbidden(t, err, resource)
		_, err = asAda.LocalSubjectAccessReviews("shop").Create(t.Context(),
			&authorizationv1.LocalSubjectAccessReview{ObjectMeta: metav1.ObjectMeta{Namespace: "shop"}, Spec: spec}, metav1.CreateOptions{})
		requireForbidden(t, err, resource)
		require.Zero(t, w.reads, "nothing is read for a caller who may not ask")
		for _, question := range w.questions() {
			require.Regexp(t, "^ada ", question, "the right is the caller's, not the subject's")
		}
	}
}

func requireForbidden(t *testing.T, err error, resource string) {
	t.Helper()
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	require.EqualError(t, err, resource+`.rbac.authorization.k8s.io is forbidden: not yours to read`)
}

func TestMissingRBACObjectsAreAnEvaluationErrorAndADenial(t *testing.T) {
	w := newWorld(t, policy)
	delete(w.objects, "rolebindings")
	require.Equal(t, authorizationv1.SubjectAccessReviewStatus{Reason: onlyRBAC,
		EvaluationError: "rolebindings.rbac.authorization.k8s.io: not on record at this instant"}, w.canI(t, jane, getDB))
	require.Equal(t, onlyRBAC+"; rolebindings.rbac.authorization.k8s.io: not on record at this instant", w.rules(t, jane, "shop").EvaluationError)
	require.True(t, w.canI(t, rest.ImpersonationConfig{UserName: "jane", Groups: []string{"auditors"}}, listAll).Allowed, "recorded bindings still allow")

	clear(w.objects)
	require.Equal(t, authorizationv1.SubjectAccessReviewStatus{Reason: onlyRBAC,
		EvaluationError: "clusterrolebindings.rbac.authorization.k8s.io: not on record at this instant; rolebindings.rbac.authorization.k8s.io: not on record at this instant"},
		w.canI(t, jane, getDB))
}

func TestARecordThatCannotBeReadGivesAnErrorAndNoDenial(t *testing.T) {
	w := newWorld(t, policy)
	w.broken = errors.New("the database is away")
	_, err := w.client(t, jane).AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(), &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &getDB}}, metav1.CreateOptions{})
	require.True(t, apierrors.IsInternalError(err), "%v", err)
	require.ErrorContains(t, err, "read clusterrolebindings of the instant: the database is away")
	w.broken = apierrors.NewServiceUnavailable("the database is away")
	_, err = w.client(t, jane).AuthorizationV1().SelfSubjectRulesReviews().Create(t.Context(), rulesIn("shop"), metav1.CreateOptions{})
	require.True(t, apierrors.IsServiceUnavailable(err), "a Status keeps its reason: %v", err)
}

func TestAnObjectThatCannotBeDecodedIsNamedAndTheOthersApply(t *testing.T) {
	w := newWorld(t, policy)
	w.objects["rolebindings"] = append([]string{`{"subjects":7}`, `[]`}, w.objects["rolebindings"]...)
	require.True(t, w.canI(t, jane, getDB).Allowed)
	status := w.canI(t, jane, listAll)
	require.Empty(t, status.EvaluationError, "a question about the whole cluster reads no role bindings")
	other := getDB
	other.Name = "other"
	require.Contains(t, w.canI(t, jane, other).EvaluationError, `some objects could not be decoded; the first is rolebindings "rolebindings0": `)
}

func TestAPermissionHasAWarningBecauseKubectlDoesNotPrintItsReason(t *testing.T) {
	w := newWorld(t, policy)
	const path, kind = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", `{"kind":"SelfSubjectAccessReview","apiVersion":"authorization.k8s.io/v1","spec":{"resourceAttributes":`
	_, header, text := post(t, w.url+path, "application/json", kind+`{"verb":"get","resource":"secrets","name":"db","namespace":"shop"}}}`, "Impersonate-User", "jane")
	require.Contains(t, text, `"allowed":true`)
	require.Equal(t, []string{`299 - "` + onlyRBAC + `"`}, header["Warning"])
	_, header, text = post(t, w.url+path, "application/json", kind+`{"verb":"get","resource":"secrets","name":"other","namespace":"shop"}}}`, "Impersonate-User", "jane")
	require.Contains(t, text, `"allowed":false`)
	require.Empty(t, header["Warning"])
}

func TestTheGroupsThatARealServerAddsAreAdded(t *testing.T) {
	w := newWorld(t, "")
	for _, c := range []struct {
		as     rest.ImpersonationConfig
		groups []string
	}{
		{rest.ImpersonationConfig{UserName: "jane"}, []string{"system:authenticated"}},
		{rest.ImpersonationConfig{UserName: "jane", Groups: []string{"a", "b"}}, []string{"a", "b", "system:authenticated"}},
		{rest.ImpersonationConfig{UserName: "jane", Groups: []string{"system:authenticated", "a"}}, []string{"system:authenticated", "a"}},
		{rest.ImpersonationConfig{UserName: "jane", Groups: []string{"system:unauthenticated"}}, []string{"system:unauthenticated"}},
		{rest.ImpersonationConfig{UserName: "system:anonymous"}, []string{"system:unauthenticated"}},
		{rest.ImpersonationConfig{UserName: "system:serviceaccount:shop:web"}, []string{"system:serviceaccounts", "system:serviceaccounts:shop", "system:authenticated"}},
		{rest.ImpersonationConfig{UserName: "system:serviceaccount:shop:web", Groups: []string{"a"}}, []string{"a", "system:authenticated"}},
		{rest.ImpersonationConfig{UserName: "system:serviceaccount:shop"}, []string{"system:authenticated"}},
		{rest.ImpersonationConfig{UserName: "system:node:n1"}, []string{"system:nodes", "system:authenticated"}},
		{rest.ImpersonationConfig{UserName: "system:node:N_1"}, []string{"system:authenticated"}},
	} {
		info := w.whoami(t, c.as)
		require.Equal(t, c.as.UserName, info.Username)
		require.Equal(t, c.groups, info.Groups, c.as)
	}
	info := w.whoami(t, rest.ImpersonationConfig{UserName: "jane", UID: "9", Extra: map[string][]string{"acme.com/Team%2F": {"red", "blue"}}})
	require.Equal(t, "9", info.UID)
	require.Equal(t, map[string]authenticationv1.ExtraValue{"acme.com/team%2f": {"red", "blue"}}, info.Extra)
}
