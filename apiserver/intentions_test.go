package apiserver_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kuberewind/kuberewind/apiserver"
	"github.com/kuberewind/kuberewind/history"
)

// A notebook records intentions, or fails.
type notebook struct {
	mu     sync.Mutex // protects what follows
	noted  []apiserver.Intention
	failed error
	logged bytes.Buffer
}

func (n *notebook) note(i apiserver.Intention) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.failed == nil {
		n.noted = append(n.noted, i)
	}
	return n.failed
}

// served serves the record with a handler that records intentions, as the user ada.
func (n *notebook) served(p *past) *past {
	handler, err := apiserver.New(apiserver.Options{
		Records: []*history.Record{p.record}, Intentions: n.note, Log: slog.New(slog.NewTextHandler(&n.logged, nil)),
	})
	require.NoError(p, err)
	p.Cleanup(handler.Close)
	other := *p
	other.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handler.ServeHTTP(w, r.WithContext(request.WithUser(r.Context(), &user.DefaultInfo{Name: "ada"})))
	}))
	p.Cleanup(other.server.Close)
	return &other
}

// sent keeps the last body that a client sent.
type sent struct {
	next        http.RoundTripper
	contentType string
	body        []byte
}

func (s *sent) RoundTrip(r *http.Request) (*http.Response, error) {
	s.contentType, s.body = r.Header.Get("Content-Type"), nil
	if r.Body != nil {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		s.body, r.Body = body, io.NopCloser(bytes.NewReader(body))
	}
	return s.next.RoundTrip(r)
}

const protobuf = "application/vnd.kubernetes.protobuf"

func TestEachWriteOfAClientIsRecordedAsAnIntention(t *testing.T) {
	book := &notebook{}
	p := book.served(serve(t))
	last := &sent{}
	config := &rest.Config{Host: p.server.URL + p.root, UserAgent: "reconciler/1", WrapTransport: func(next http.RoundTripper) http.RoundTripper {
		last.next = next
		return last
	}}
	config.ContentType = protobuf
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	untyped, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	deployments, core := client.AppsV1().Deployments("shop"), client.CoreV1()
	web := metav1.ObjectMeta{Name: "web"}
	scaled := []byte(`{"spec":{"replicas":5}}`)
	for _, c := range []struct {
		name, contentType string
		do                func(context.Context) error
		want              apiserver.Intention
	}{
		{"create", protobuf, func(ctx context.Context) error {
			_, err := deployments.Create(ctx, &appsv1.Deployment{ObjectMeta: web}, metav1.CreateOptions{})
			return err
		}, apiserver.Intention{Verb: "create", Group: "apps", Resource: "deployments", Namespace: "shop", Name: "web"}},
		{"create by a prefix of a name", protobuf, func(ctx context.Context) error {
			_, err := core.Pods("shop").Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "web-"}}, metav1.CreateOptions{DryRun: []string{"All"}})
			return err
		}, apiserver.Intention{Verb: "create", Resource: "pods", Namespace: "shop", GenerateName: "web-", DryRun: true}},
		{"create a namespace", protobuf, func(ctx context.Context) error {
			_, err := core.Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "new"}}, metav1.CreateOptions{})
			return err
		}, apiserver.Intention{Verb: "create", Resource: "namespaces", Name: "new"}},
		{"evict", protobuf, func(ctx context.Context) error {
			return client.PolicyV1().Evictions("shop").Evict(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop"}})
		}, apiserver.Intention{Verb: "create", Resource: "pods", Subresource: "eviction", Namespace: "shop", Name: "web"}},
		{"update", protobuf, func(ctx context.Context) error {
			_, err := deployments.UpdateStatus(ctx, &appsv1.Deployment{ObjectMeta: web}, metav1.UpdateOptions{})
			return err
		}, apiserver.Intention{Verb: "update", Group: "apps", Resource: "deployments", Subresource: "status", Namespace: "shop", Name: "web"}},
		{"update a namespace", protobuf, func(ctx context.Context) error {
			_, err := core.Namespaces().Update(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, metav1.UpdateOptions{})
			return err
		}, apiserver.Intention{Verb: "update", Resource: "namespaces", Name: "shop"}},
		{"scale", "application/merge-patch+json", func(ctx context.Context) error {
			_, err := deployments.Patch(ctx, "web", types.MergePatchType, scaled, metav1.PatchOptions{}, "scale")
			return err
		}, apiserver.Intention{Verb: "patch", Group: "apps", Resource: "deployments", Subresource: "scale", Namespace: "shop", Name: "web"}},
		{"apply", "application/apply-patch+yaml", func(ctx context.Context) error {
			_, err := core.ConfigMaps("shop").Apply(ctx, applycorev1.ConfigMap("c", "shop"), metav1.ApplyOptions{FieldManager: "m"})
			return err
		}, apiserver.Intention{Verb: "patch", Resource: "configmaps", Namespace: "shop", Name: "c"}},
		{"delete", protobuf, func(ctx context.Context) error {
			return deployments.Delete(ctx, "web", metav1.DeleteOptions{})
		}, apiserver.Intention{Verb: "delete", Group: "apps", Resource: "deployments", Namespace: "shop", Name: "web"}},
		{"delete nothing", "application/json", func(ctx context.Context) error {
			resource := schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
			return untyped.Resource(resource).Namespace("shop").Delete(ctx, "web", metav1.DeleteOptions{DryRun: []string{"All"}})
		}, apiserver.Intention{Verb: "delete", Group: "apps", Resource: "deployments", Namespace: "shop", Name: "web", DryRun: true}},
		{"delete many", protobuf, func(ctx context.Context) error {
			return core.Pods("shop").DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "app=web"})
		}, apiserver.Intention{Verb: "deletecollection", Resource: "pods", Namespace: "shop", LabelSelector: "app=web"}},
		{"create a Secret", protobuf, func(ctx context.Context) error {
			_, err := core.Secrets("shop").Create(ctx, &corev1.Secret{ObjectMeta: web, StringData: map[string]string{"pin": "1234"}}, metav1.CreateOptions{})
			return err
		}, apiserver.Intention{Verb: "create", Resource: "secrets", Namespace: "shop", Name: "web"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			book.noted = nil
			err := c.do(t.Context())
			require.True(t, apierrors.IsMethodNotSupported(err), "%v", err)
			require.ErrorContains(t, err, "the past is read-only: this is cluster")
			require.Equal(t, c.contentType, last.contentType)
			require.Len(t, book.noted, 1)
			got := book.noted[0]
			require.WithinDuration(t, time.Now(), got.Instant, 10*365*24*time.Hour)
			c.want.Cluster, c.want.Seq, c.want.Instant = p.record.Cluster().UID, p.last, got.Instant
			c.want.UserAgent, c.want.User, c.want.Version = "reconciler/1", "ada", "v1"
			if c.want.Resource != "secrets" {
				digest := sha256.Sum256(last.body)
				c.want.SHA256 = hex.EncodeToString(digest[:])
			}
			require.Equal(t, c.want, got)
		})
	}
	t.Run("reviews are no writes", func(t *testing.T) {
		book.noted = nil
		_, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(), &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "get", Resource: "pods"}},
		}, metav1.CreateOptions{})
		require.NoError(t, err)
		_, err = client.AuthenticationV1().TokenReviews().Create(t.Context(), &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: "hush"}}, metav1.CreateOptions{})
		require.Error(t, err)
		require.Equal(t, http.StatusNotFound, int(p.status(http.MethodPost, "/api/v1/namespaces/shop/pods/web/exec").Code))
		require.Equal(t, http.StatusMethodNotAllowed, int(p.status(http.MethodPost, "/healthz").Code))
		code, _, _ := p.ask(http.MethodPost, "/apis/nobody.example.com/v1/things")
		require.Equal(t, http.StatusNotFound, code)
		require.Empty(t, book.noted)
	})
}

// post sends a body.
func (p *past) post(path, contentType string, body io.Reader) (int, string) {
	p.Helper()
	r, err := http.NewRequestWithContext(p.Context(), http.MethodPost, p.server.URL+p.root+path, body)
	require.NoError(p, err)
	r.Header.Set("Content-Type", contentType)
	response, err := p.server.Client().Do(r)
	require.NoError(p, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(p, err)
	return response.StatusCode, string(text)
}

func TestABodyThatCannotBeReadIsAnIntentionWithoutAName(t *testing.T) {
	book := &notebook{}
	p := book.served(serve(t))
	bomb := "a: &a [x,x,x,x,x,x,x,x,x]\n"
	for i := range 20 {
		bomb += strings.ReplaceAll("N: &N [*P,*P,*P,*P,*P,*P,*P,*P,*P]\n", "N", string(rune('b'+i)))
		bomb = strings.ReplaceAll(bomb, "P", string(rune('a'+i)))
	}
	for name, c := range map[string]struct{ contentType, body string }{
		"nothing":             {"application/json", ""},
		"no object":           {"application/json", `[1]`},
		"half an object":      {"application/json", `{"metadata":{"name":"a`},
		"a name that is none": {"application/json", `{"metadata":{"name":{}}}`},
		"deep":                {"application/json", strings.Repeat(`{"metadata":`, 200_000)},
		"a YAML bomb":         {"application/yaml", bomb},
		"no protobuf":         {protobuf, "k8s\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f"},
		"a protobuf of JSON":  {protobuf, `{"metadata":{"name":"a"}}`},
		"another format":      {"text/plain", `{"metadata":{"name":"a"}}`},
		"no format":           {";;", `{"metadata":{"name":"a"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			book.noted = nil
			code, text := p.post("/api/v1/namespaces/shop/pods", c.contentType, strings.NewReader(c.body))
			require.Equal(t, http.StatusMethodNotAllowed, code, text)
			require.Len(t, book.noted, 1)
			require.Empty(t, book.noted[0].Name)
			require.Equal(t, c.body == "", book.noted[0].SHA256 == "")
		})
	}
	t.Run("a long name is shortened", func(t *testing.T) {
		book.noted = nil
		code, _ := p.post("/api/v1/namespaces/shop/pods", "application/json", strings.NewReader(`{"metadata":{"name":"`+strings.Repeat("ü", 1<<20)+`"}}`))
		require.Equal(t, http.StatusMethodNotAllowed, code)
		require.Less(t, len(book.noted[0].Name), 300)
	})
	t.Run("a body that API servers refuse is refused", func(t *testing.T) {
		book.noted = nil
		code, text := p.post("/api/v1/namespaces/shop/pods", "application/json", strings.NewReader(strings.Repeat(" ", 3<<20+1)))
		require.Equal(t, http.StatusRequestEntityTooLarge, code, text)
		require.Empty(t, book.noted)
	})
}

func TestAFailureToRecordAnIntentionIsSentToTheClientAndLogged(t *testing.T) {
	book := &notebook{failed: errors.New("the disk is full")}
	p := book.served(serve(t))
	code, text := p.post("/api/v1/namespaces/shop/pods", "application/json", strings.NewReader(`{}`))
	require.Equal(t, http.StatusServiceUnavailable, code)
	require.Contains(t, text, "the disk is full")
	require.Contains(t, book.logged.String(), "the disk is full")
}
