package review_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/kuberewind/kuberewind/apiserver/internal/review"
)

// ada is the caller of every request.
var ada = &user.DefaultInfo{Name: "ada", UID: "7", Groups: []string{"auditors", user.AllAuthenticated}, Extra: map[string][]string{"team": {"red"}}}

// world is a review server with its objects and the answers of its Authorize.
type world struct {
	url     string
	objects map[string][]string // JSON, by resource; a missing resource is not recorded
	broken  error               // returned by every read

	refuse func(authorizer.Attributes) error

	mu    sync.Mutex // guards reads and asked
	reads int
	asked []string
}

func newWorld(t *testing.T, policy string) *world {
	t.Helper()
	w := &world{objects: map[string][]string{"roles": nil, "rolebindings": nil, "clusterroles": nil, "clusterrolebindings": nil}}
	for _, doc := range documents(t, policy) {
		require.Contains(t, w.objects, doc.resource)
		w.objects[doc.resource] = append(w.objects[doc.resource], doc.text)
	}
	w.serve(t, review.New(w, review.Options{Authorize: w.authorize}))
	return w
}

// document is one RBAC object.
type document struct {
	metav1.TypeMeta
	metav1.ObjectMeta `json:"metadata"`
	resource, text    string
}

// documents reads YAML.
func documents(t *testing.T, policy string) []document {
	t.Helper()
	var all []document
	for part := range strings.SplitSeq(policy, "\n---\n") {
		if strings.TrimSpace(part) == "" {
			continue
		}
		text, err := yaml.YAMLToJSONStrict([]byte(part))
		require.NoError(t, err)
		doc := document{text: string(text)}
		require.NoError(t, json.Unmarshal(text, &doc))
		doc.resource = strings.ToLower(doc.Kind) + "s"
		all = append(all, doc)
	}
	return all
}

func (w *world) serve(t *testing.T, server *review.Server) {
	t.Helper()
	listener := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		server.ServeHTTP(rw, r.WithContext(request.WithUser(r.Context(), ada)))
	}))
	t.Cleanup(listener.Close)
	w.url = listener.URL
}

func (w *world) Docs(_ context.Context, resource schema.GroupResource) (iter.Seq2[string, []byte], error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reads++
	docs, recorded := w.objects[resource.Resource]
	switch {
	case w.broken != nil:
		return nil, w.broken
	case !recorded || resource.Group != rbacv1.GroupName:
		return nil, review.ErrNotRecorded
	}
	return func(yield func(string, []byte) bool) {
		for i, doc := range docs {
			if !yield(fmt.Sprint(resource.Resource, i), []byte(doc)) {
				return
			}
		}
	}, nil
}

func (w *world) authorize(_ context.Context, a authorizer.Attributes) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = append(w.asked, a.GetUser().GetName()+" "+a.GetVerb()+" "+a.GetResource()+"."+a.GetAPIGroup()+a.GetPath()+" in "+a.GetNamespace())
	if w.refuse == nil {
		return nil
	}
	return w.refuse(a)
}

func (w *world) questions() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.asked)
}

// client returns a client that speaks protobuf, as kubectl does, and impersonates the user if one is given.
func (w *world) client(t *testing.T, as rest.ImpersonationConfig) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(&rest.Config{Host: w.url, Impersonate: as, QPS: -1, WarningHandler: rest.NoWarnings{},
		ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeProtobuf}})
	require.NoError(t, err)
	return client
}

func (w *world) canI(t *testing.T, as rest.ImpersonationConfig, attributes authorizationv1.ResourceAttributes) authorizationv1.SubjectAccessReviewStatus {
	t.Helper()
	answer, err := w.client(t, as).AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(),
		&authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &attributes}}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.Equal(t, attributes, *answer.Spec.ResourceAttributes)
	return answer.Status
}

func post(t *testing.T, url, contentType, body string, headers ...string) (int, http.Header, string) {
	t.Helper()
	return send(t, http.DefaultClient, url, contentType, body, headers...)
}

// send posts a body and returns the answer's code, header and text.
func send(t *testing.T, client *http.Client, url, contentType, body string, headers ...string) (int, http.Header, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewBufferString(body))
	require.NoError(t, err)
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	answer, err := client.Do(r)
	require.NoError(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return answer.StatusCode, answer.Header, string(text)
}

func forbidden(a authorizer.Attributes) error {
	return apierrors.NewForbidden(schema.GroupResource{Group: a.GetAPIGroup(), Resource: a.GetResource()}, a.GetName(), errNotYours)
}
