package review_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kuberewind/kuberewind/apiserver/internal/review"
	"github.com/kuberewind/kuberewind/internal/controlplane"
)

// patience bounds the wait for expected events, even on a busy machine.
const patience = 5 * time.Minute

// more adds objects to the policy of the other tests. The objects named last are the newest of their kind.
const more = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: operator}
rules:
- {apiGroups: [apps, ""], resources: ["*"], verbs: [get, patch]}
- {apiGroups: ["*"], resources: ["*/scale"], verbs: [update]}
- {apiGroups: [""], resources: [pods/log], verbs: [get]}
- {nonResourceURLs: ["/healthz/*"], verbs: ["*"]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: accounts-of-shop}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: operator}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: "system:serviceaccounts:shop"}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: nodes-operate, namespace: bank}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: operator}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: "system:nodes"}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: last}
rules: [{apiGroups: [last], resources: [everywhere], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: last}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: last}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: last}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: last, namespace: shop}
rules: [{apiGroups: [last], resources: [here], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: last, namespace: shop}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: last}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: last}]
`

// pair is a real API server, and a review server with its RBAC objects.
type pair struct {
	plane *controlplane.ControlPlane
	admin kubernetes.Interface
	ours  *world
}

func TestARealServerGivesTheSameAnswers(t *testing.T) {
	p := newPair(t)
	t.Run("may a subject", p.mayASubject)
	t.Run("may a subject that the body names", p.mayANamedSubject)
	t.Run("what may a subject", p.whatMayASubject)
	t.Run("who is a subject", p.whoIsASubject)
	t.Run("bad input", p.badInput)
	t.Run("kubectl auth", p.kubectl)
}

func newPair(t *testing.T) *pair {
	t.Helper()
	p := &pair{plane: controlplane.ForTest(t, controlplane.Options{}), ours: newWorld(t, "")}
	var err error
	p.admin, err = kubernetes.NewForConfig(p.plane.Config())
	require.NoError(t, err)
	for _, name := range []string{"shop", "bank"} {
		_, err := p.admin.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	for _, doc := range documents(t, policy+"\n---\n"+more) {
		path := rbacPath(doc.resource, doc.Namespace)
		require.NoError(t, p.admin.RbacV1().RESTClient().Post().AbsPath(path).Body([]byte(doc.text)).Do(t.Context()).Error(), doc.text)
	}
	p.awaitPolicy(t)
	for resource := range p.ours.objects {
		p.ours.objects[resource] = p.list(t, resource)
	}
	p.serve(t)
	return p
}

func rbacPath(resource, namespace string) string {
	if namespace == "" {
		return "/apis/rbac.authorization.k8s.io/v1/" + resource
	}
	return "/apis/rbac.authorization.k8s.io/v1/namespaces/" + namespace + "/" + resource
}

// awaitPolicy waits until the server's authorizer has all objects. Each informer receives the objects of one kind in order.
func (p *pair) awaitPolicy(t *testing.T) {
	t.Helper()
	last := p.real(t, rest.ImpersonationConfig{UserName: "last"})
	for _, resource := range []string{"everywhere", "here"} {
		require.Eventually(t, func() bool {
			return ask(t, last, authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
				Verb: "get", Group: "last", Resource: resource, Namespace: "shop"}}).Allowed
		}, patience, 20*time.Millisecond)
	}
}

func (p *pair) list(t *testing.T, resource string) []string {
	t.Helper()
	body, err := p.admin.RbacV1().RESTClient().Get().AbsPath(rbacPath(resource, "")).DoRaw(t.Context())
	require.NoError(t, err)
	var list struct{ Items []json.RawMessage }
	require.NoError(t, json.Unmarshal(body, &list))
	require.NotEmpty(t, list.Items)
	var docs []string
	for _, item := range list.Items {
		docs = append(docs, string(item))
	}
	return docs
}

// serve answers reviews with our server, and proxies kubectl's other requests to the real server.
func (p *pair) serve(t *testing.T) {
	t.Helper()
	transport, err := rest.TransportFor(p.plane.Config())
	require.NoError(t, err)
	target, err := url.Parse(p.plane.Config().Host)
	require.NoError(t, err)
	proxy := &httputil.ReverseProxy{Transport: transport, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}
	reviews := review.New(p.ours, review.Options{Authorize: p.ours.authorize})
	listener := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if reviews.Handles(r) {
			reviews.ServeHTTP(w, r.WithContext(request.WithUser(r.Context(), ada)))
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(listener.Close)
	p.ours.url = listener.URL
}

// real returns a client of the real server. It sets a node's group, because the server adds it only for some impersonating users.
func (p *pair) real(t *testing.T, as rest.ImpersonationConfig) kubernetes.Interface {
	t.Helper()
	if strings.HasPrefix(as.UserName, "system:node:") {
		as.Groups = []string{"system:nodes"}
	}
	config := p.plane.Config()
	config.Impersonate = as
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	return client
}

func ask(t *testing.T, client kubernetes.Interface, spec authorizationv1.SelfSubjectAccessReviewSpec) authorizationv1.SubjectAccessReviewStatus {
	t.Helper()
	answer, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(), &authorizationv1.SelfSubjectAccessReview{Spec: spec}, metav1.CreateOptions{})
	require.NoError(t, err)
	return answer.Status
}

func subjects() map[string]rest.ImpersonationConfig {
	return map[string]rest.ImpersonationConfig{
		"jane":         jane,
		"an auditor":   {UserName: "eve", Groups: []string{"auditors"}},
		"otto":         {UserName: "otto"},
		"a master":     {UserName: "root", Groups: []string{"system:masters"}},
		"an account":   {UserName: "system:serviceaccount:shop:web"},
		"a stranger":   {UserName: "system:serviceaccount:bank:web"},
		"in name only": {UserName: "system:serviceaccount:shop:web", Groups: []string{"others"}},
		"a node":       {UserName: "system:node:n1"},
		"with a uid":   {UserName: "jane", UID: "9", Extra: map[string][]string{"acme.com/team": {"red", "blue"}}},
	}
}

func questions() []authorizationv1.SelfSubjectAccessReviewSpec {
	var all []authorizationv1.SelfSubjectAccessReviewSpec
	for _, a := range []authorizationv1.ResourceAttributes{
		{Verb: "get", Resource: "secrets", Name: "db"}, {Verb: "get", Resource: "secrets", Name: "other"}, {Verb: "get", Resource: "secrets"}, {Verb: "*", Resource: "secrets"},
		{Verb: "list", Resource: "nodes"}, {Verb: "delete", Resource: "nodes"}, {Verb: "get", Resource: "pods", Subresource: "log"}, {Verb: "patch", Group: "apps", Resource: "deployments"},
		{Verb: "update", Group: "apps", Resource: "deployments", Subresource: "scale"}, {Verb: "create", Group: "authorization.k8s.io", Resource: "selfsubjectaccessreviews"},
		{Verb: "*", Group: "*", Resource: "*"},
	} {
		for _, namespace := range []string{"", "shop", "bank"} {
			a.Namespace = namespace
			all = append(all, authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: a.DeepCopy()})
		}
	}
	for _, path := range []string{"/metrics", "/healthz", "/healthz/etcd", "/version"} {
		all = append(all, authorizationv1.SelfSubjectAccessReviewSpec{NonResourceAttributes: &authorizationv1.NonResourceAttributes{Verb: "get", Path: path}})
	}
	return all
}

func (p *pair) mayASubject(t *testing.T) {
	yes, no := 0, 0
	for name, as := range subjects() {
		theirs, ours := p.real(t, as), p.ours.client(t, as)
		for _, question := range questions() {
			want, got := ask(t, theirs, question), ask(t, ours, question)
			require.Equal(t, want.Allowed, got.Allowed, "%s: %s: the real server says %s", name, question.String(), want.Reason)
			require.Equal(t, want.Denied, got.Denied)
			require.Equal(t, want.EvaluationError, got.EvaluationError)
			if want.Allowed {
				yes++
			} else {
				no++
				reason := strings.TrimPrefix(want.Reason, "rbac: ") // the prefix names the authorizer if there are several
				require.Equal(t, strings.TrimPrefix(reason+"; "+onlyRBAC, "; "), got.Reason, "%s: %s", name, question.String())
			}
		}
	}
	t.Logf("%d questions have the answer yes, and %d no", yes, no)
	require.Greater(t, yes, 60)
	require.Greater(t, no, 150)
}

func (p *pair) mayANamedSubject(t *testing.T) {
	clients := []kubernetes.Interface{p.admin, p.ours.client(t, nobody)}
	for _, question := range questions() {
		spec := authorizationv1.SubjectAccessReviewSpec{User: "jane", Groups: []string{"auditors"},
			ResourceAttributes: question.ResourceAttributes, NonResourceAttributes: question.NonResourceAttributes}
		var allowed []bool
		for _, client := range clients {
			answer, err := client.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), &authorizationv1.SubjectAccessReview{Spec: spec}, metav1.CreateOptions{})
			require.NoError(t, err)
			allowed = append(allowed, answer.Status.Allowed)
			if a := question.ResourceAttributes; a != nil && a.Namespace == "shop" {
				local, err := client.AuthorizationV1().LocalSubjectAccessReviews("shop").Create(t.Context(),
					&authorizationv1.LocalSubjectAccessReview{ObjectMeta: metav1.ObjectMeta{Namespace: "shop"}, Spec: spec}, metav1.CreateOptions{})
				require.NoError(t, err)
				require.Equal(t, answer.Status.Allowed, local.Status.Allowed)
			}
		}
		require.Equal(t, allowed[0], allowed[1], spec.String())
	}
}

func (p *pair) whatMayASubject(t *testing.T) {
	for name, as := range subjects() {
		for _, namespace := range []string{"shop", "bank"} {
			theirs, err := p.real(t, as).AuthorizationV1().SelfSubjectRulesReviews().Create(t.Context(), rulesIn(namespace), metav1.CreateOptions{})
			require.NoError(t, err)
			ours := p.ours.rules(t, as, namespace)
			require.ElementsMatch(t, theirs.Status.ResourceRules, ours.ResourceRules, "%s in %s", name, namespace)
			require.ElementsMatch(t, theirs.Status.NonResourceRules, ours.NonResourceRules, "%s in %s", name, namespace)
			require.NotEmpty(t, ours.ResourceRules)
			require.Contains(t, ours.EvaluationError, theirs.Status.EvaluationError)
		}
	}
}

func (p *pair) whoIsASubject(t *testing.T) {
	for name, as := range subjects() {
		theirs, err := p.real(t, as).AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		require.NoError(t, err)
		require.Equal(t, theirs.Status.UserInfo, p.ours.whoami(t, as), name)
	}
}

func (p *pair) badInput(t *testing.T) {
	client, err := rest.HTTPClientFor(p.plane.Config())
	require.NoError(t, err)
	const sar, local, rules = "/subjectaccessreviews", "/namespaces/shop/localsubjectaccessreviews", "/selfsubjectrulesreviews"
	for name, c := range map[string]struct{ path, contentType, body string }{
		"an empty body":             {sar, "application/json", ""},
		"no JSON":                   {sar, "application/json", "{"},
		"a long body that is none":  {sar, "application/json", strings.Repeat("x", 100)},
		"a list":                    {sar, "application/json", "[]"},
		"an empty object":           {sar, "application/json", "{}"},
		"another kind":              {sar, "application/json", `{"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1"}`},
		"a kind that no one knows":  {sar, "application/json", `{"kind":"Nothing","apiVersion":"acme.com/v1"}`},
		"a sibling":                 {sar, "application/json", `{"kind":"SelfSubjectRulesReview","apiVersion":"authorization.k8s.io/v1"}`},
		"another version":           {sar, "application/json", `{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1beta1","spec":{"user":"jane","nonResourceAttributes":{"verb":"get","path":"/"}}}`},
		"no attributes":             {sar, "application/json", `{"spec":{"user":"jane"}}`},
		"both attributes":           {sar, "application/json", `{"spec":{"user":"jane","resourceAttributes":{},"nonResourceAttributes":{}}}`},
		"no subject":                {sar, "application/json", `{"spec":{"resourceAttributes":{"verb":"get"}}}`},
		"a number as verb":          {sar, "application/json", `{"spec":{"user":"jane","resourceAttributes":{"verb":7}}}`},
		"an empty selector":         {sar, "application/json", `{"spec":{"user":"jane","resourceAttributes":{"verb":"get","labelSelector":{}}}}`},
		"a hostile selector":        {sar, "application/json", `{"spec":{"user":"jane","resourceAttributes":{"verb":"list","fieldSelector":{"requirements":[{"key":"","operator":"In"}]}}}}`},
		"a selector that is none":   {sar, "application/json", `{"spec":{"user":"jane","resourceAttributes":{"verb":"list","labelSelector":{"rawSelector":"!!"}}}}`},
		"an unknown field":          {sar, "application/json", `{"spec":{"user":"jane","colour":"red","resourceAttributes":{"verb":"get"}}}`},
		"a field twice":             {sar, "application/json", `{"spec":{"user":"jane","user":"otto","resourceAttributes":{"verb":"get"}}}`},
		"an unknown field, ignored": {sar + "?fieldValidation=Ignore", "application/json", `{"spec":{"user":"jane","colour":"red","resourceAttributes":{"verb":"get"}}}`},
		"an unknown field, strict":  {sar + "?fieldValidation=Strict", "application/json", `{"spec":{"user":"jane","colour":"red","resourceAttributes":{"verb":"get"}}}`},
		"another directive":         {sar + "?fieldValidation=Sometimes", "application/json", `{"spec":{"user":"jane","resourceAttributes":{"verb":"get"}}}`},
		"a dry run of nothing":      {sar + "?dryRun=Some", "application/json", `{"spec":{"user":"jane","resourceAttributes":{"verb":"get"}}}`},
		"YAML":                      {sar, "application/yaml", "spec: {user: jane, resourceAttributes: {verb: get}}"},
		"no content type":           {sar, "", `{"spec":{"user":"jane","resourceAttributes":{"verb":"get"}}}`},
		"a form":                    {sar, "application/x-www-form-urlencoded", "user=jane"},
		"JSON as protobuf":          {sar, "application/vnd.kubernetes.protobuf", "{}"},
		"truncated protobuf":        {sar, "application/vnd.kubernetes.protobuf", "k8s\x00\x0a\x99"},
		"no namespace":              {local, "application/json", `{"spec":{"user":"jane","resourceAttributes":{"verb":"get"}}}`},
		"another namespace":         {local, "application/json", `{"metadata":{"namespace":"bank"},"spec":{"user":"jane","resourceAttributes":{"verb":"get","namespace":"bank"}}}`},
		"a path in a namespace":     {local, "application/json", `{"metadata":{"namespace":"shop"},"spec":{"user":"jane","nonResourceAttributes":{"verb":"get","path":"/"}}}`},
		"rules of no namespace":     {rules, "application/json", `{"spec":{}}`},
		"rules without a spec":      {rules, "application/json", `{}`},
	} {
		path := "/apis/authorization.k8s.io/v1" + c.path
		wantCode, wantHeader, want := send(t, client, p.plane.Config().Host+path, c.contentType, c.body)
		code, header, got := send(t, http.DefaultClient, p.ours.url+path, c.contentType, c.body)
		require.Equal(t, wantCode, code, "%s: %s: %s", name, want, got)
		if code == http.StatusCreated {
			require.Equal(t, withoutManagers(t, want), withoutManagers(t, got), name)
			require.Subset(t, header["Warning"], wantHeader["Warning"], name)
			continue
		}
		require.JSONEq(t, want, got, name)
	}
}

// withoutManagers returns an answer as a map, without the field managers that a real server adds, and without its reason.
func withoutManagers(t *testing.T, text string) map[string]any {
	t.Helper()
	var answer map[string]any
	require.NoError(t, json.Unmarshal([]byte(text), &answer), text)
	maps.DeleteFunc(answer["metadata"].(map[string]any), func(key string, _ any) bool { return key == "managedFields" })
	maps.DeleteFunc(answer["status"].(map[string]any), func(key string, _ any) bool { return key == "reason" })
	return answer
}

func sorted(text string) []string {
	return slices.Sorted(strings.SplitSeq(strings.TrimSpace(text), "\n"))
}
