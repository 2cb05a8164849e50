package page_test

import (
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"

	"github.com/kuberewind/kuberewind/internal/controlplane"
	"github.com/kuberewind/kuberewind/internal/recordertest"
	"github.com/kuberewind/kuberewind/internal/serve/delegate"
	"github.com/kuberewind/kuberewind/internal/serve/page"
)

// UIDs of the clusters.
const (
	mine  = "11111111-0000-0000-0000-000000000000"
	other = "22222222-0000-0000-0000-000000000000"
)

// Users of the live cluster. Only the lister may list all resources.
const (
	lister = "lister"
	viewer = "viewer" // may read what the role view names
	reader = "reader" // may read one namespace
)

// A world is a live cluster, next to another cluster that knows no user.
type world struct {
	plane    *controlplane.ControlPlane
	client   *kubernetes.Clientset
	stranger *rest.Config
	taken    atomic.Int64 // requests to the other cluster
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{plane: controlplane.ForTest(t, controlplane.Options{Users: []controlplane.User{{Name: lister}, {Name: viewer}, {Name: reader}}})}
	var err error
	w.client, err = kubernetes.NewForConfig(w.plane.Config())
	require.NoError(t, err)
	_, err = w.client.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "timeline-reader"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"list"}},
	}}, metav1.CreateOptions{})
	require.NoError(t, err)
	w.grant(t)
	_, err = w.client.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: viewer}, RoleRef: role("view"), Subjects: user(viewer)}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = w.client.RbacV1().RoleBindings("default").Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: reader}, RoleRef: role("cluster-admin"), Subjects: user(reader)}, metav1.CreateOptions{})
	require.NoError(t, err)
	strange := httptest.NewTLSServer(http.HandlerFunc(w.knowsNoUser))
	t.Cleanup(strange.Close)
	ca, err := cert.EncodeCertificates(strange.Certificate())
	require.NoError(t, err)
	w.stranger = &rest.Config{Host: strange.URL, TLSClientConfig: rest.TLSClientConfig{CAData: ca}}
	return w
}

// knowsNoUser is the live API of the other cluster.
func (w *world) knowsNoUser(answer http.ResponseWriter, r *http.Request) {
	w.taken.Add(1)
	if !strings.HasSuffix(r.URL.Path, "/tokenreviews") {
		answer.WriteHeader(http.StatusUnauthorized)
		return
	}
	answer.Header().Set("Content-Type", "application/json")
	answer.WriteHeader(http.StatusCreated)
	_, _ = io.WriteString(answer, `{"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1","status":{}}`)
}

func role(name string) rbacv1.RoleRef {
	return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}
}

func user(name string) []rbacv1.Subject { return []rbacv1.Subject{{Kind: rbacv1.UserKind, Name: name}} }

// grant gives the lister the right to list all resources.
func (w *world) grant(t *testing.T) {
	t.Helper()
	_, err := w.client.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: lister}, RoleRef: role("timeline-reader"), Subjects: user(lister)}, metav1.CreateOptions{})
	require.NoError(t, err)
}

// open serves the page to users of the live clusters.
func (w *world) open(t *testing.T, mode delegate.Mode) *tab {
	t.Helper()
	var minutes atomic.Int64 // so that no answer of a live API is cached
	live, err := delegate.New(delegate.Options{
		Mode: mode, Clusters: map[string]*rest.Config{mine: w.plane.Config(), other: w.stranger},
		Now: func() time.Time { return time.Now().Add(time.Duration(minutes.Add(1)) * time.Minute) },
	})
	require.NoError(t, err)
	o := options()
	o.Timelines = map[string]http.Handler{mine: says("timeline of mine"), other: says("timeline of other")}
	certText, keyText, err := cert.GenerateSelfSignedCertKey("127.0.0.1", nil, nil)
	require.NoError(t, err)
	certificate, err := tls.X509KeyPair(certText, keyText)
	require.NoError(t, err)
	o.Shared = &page.Shared{Certificate: certificate, Live: live}
	b := open(t, o)
	b.client.Transport.(*http.Transport).TLSClientConfig = &tls.Config{InsecureSkipVerify: true} // the test concerns the client's identity
	return b
}

// as returns the tab of a user of the live cluster.
func (w *world) as(t *testing.T, b *tab, name string) *tab {
	t.Helper()
	theirs, err := w.plane.APIServer.Config(name)
	require.NoError(t, err)
	again := *b
	again.token = theirs.BearerToken
	return &again
}

// queries are queries that a client could try.
var queries = []string{
	"", "&namespace=default", "&namespace=default&resource=configmaps&name=none", "&uid=" + mine, "&at=seq:1", "&name=%00", "&namespace=nobody", "&cluster=" + other,
}

func TestTheLiveClusterSaysWhoMayRead(t *testing.T) {
	w := newWorld(t)
	for _, mode := range delegate.Modes() {
		t.Run(string(mode), func(t *testing.T) {
			b := w.open(t, mode)
			require.Regexp(t, "^https://", b.server.Access().URL)
			w.allowed(t, b)
			w.denied(t, b)
			w.withdrawn(t, b)
		})
	}
	t.Run("the live cluster is away", func(t *testing.T) {
		b := w.open(t, delegate.Self)
		require.NoError(t, w.plane.APIServer.Stop(t.Context()))
		got := w.as(t, b, lister).get("/timeline/v1/meta?cluster=" + mine)
		require.Equal(t, http.StatusServiceUnavailable, got.code)
		require.Contains(t, got.status(t).Message, "did not say who may read")
		require.Equal(t, http.StatusOK, b.get("/").code)
	})
}

// allowed reads as a user who may list all resources. If a query names two clusters, the answer is about the one that
// decided.
func (w *world) allowed(t *testing.T, b *tab) {
	t.Helper()
	w.taken.Store(0)
	listing := w.as(t, b, lister)
	recordertest.Eventually(t.Context(), t, "the live API knows the right", func() bool {
		return listing.get("/timeline/v1/meta?cluster="+mine).code == http.StatusOK
	})
	got := listing.get("/timeline/v1/meta?cluster=" + mine + "&cluster=" + other + "&from=1")
	require.Equal(t, `timeline of mine GET /timeline/v1/meta?cluster=`+mine+`&from=1 token "" user "lister"`, got.text)
	require.Equal(t, "no-store", got.header.Get("Cache-Control"))
	require.Contains(t, listing.send(http.MethodPut, "/session/v1/night?cluster="+mine, "{}").text, `user "lister"`)
	require.Equal(t, http.StatusMethodNotAllowed, listing.send(http.MethodPut, "/timeline/v1/meta?cluster="+mine, "").code)
	require.Equal(t, http.StatusNotFound, listing.get("/session/v2?cluster="+mine).code)
	require.Equal(t, http.StatusForbidden, listing.get("/timeline/v1/meta?cluster="+mine, func(r *http.Request) { r.Header.Set("Impersonate-User", reader) }).code)
	require.Zero(t, w.taken.Load(), "a token went to the live API of another cluster")
	require.Equal(t, http.StatusUnauthorized, listing.get("/timeline/v1/meta?cluster="+other).code)
	require.Equal(t, http.StatusUnauthorized, listing.get("/timeline/v1/meta").code, "the request names no cluster")
	require.Equal(t, http.StatusForbidden, listing.get("/timeline/v1/meta?cluster=nobody").code)
}

// denied sends requests as users who may not read everything, and without a user.
func (w *world) denied(t *testing.T, b *tab) {
	t.Helper()
	for _, name := range []string{reader, viewer} {
		theirs := w.as(t, b, name)
		for _, path := range dataPaths {
			path, _, _ = strings.Cut(path, "?")
			for _, query := range queries {
				got := theirs.get(path + "?cluster=" + mine + query)
				require.Equal(t, http.StatusForbidden, got.code, path+query)
				require.Contains(t, got.status(t).Message, `it needs the right to list "*.*"`)
			}
			require.Equal(t, http.StatusForbidden, theirs.send(http.MethodPut, path+"?cluster="+mine, "{}").code, path)
		}
	}
	for _, change := range []func(*http.Request){
		func(*http.Request) {},
		func(r *http.Request) { r.Header.Set("X-Remote-User", "lister") },
		func(r *http.Request) { r.Header.Set("X-Forwarded-User", "lister") },
		func(r *http.Request) { r.Header.Set("Authorization", "Bearer nonsense") },
		func(r *http.Request) { r.SetBasicAuth("lister", w.as(t, b, lister).token) },
		func(r *http.Request) { r.URL.RawQuery += "&token=" + url.QueryEscape(w.as(t, b, lister).token) },
	} {
		require.Equal(t, http.StatusUnauthorized, b.get("/timeline/v1/meta?cluster="+mine, change).code)
	}
	require.Equal(t, http.StatusNotFound, b.exchange("x").code)
	plain, err := http.NewRequestWithContext(t.Context(), http.MethodGet, strings.Replace(b.server.Access().URL, "https", "http", 1), nil)
	require.NoError(t, err)
	response, err := b.client.Do(plain)
	require.NoError(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusBadRequest, response.StatusCode, "%s", text)
}

// withdrawn revokes the right while the page is open, and grants it again.
func (w *world) withdrawn(t *testing.T, b *tab) {
	t.Helper()
	listing := w.as(t, b, lister)
	require.NoError(t, w.client.RbacV1().ClusterRoleBindings().Delete(t.Context(), lister, metav1.DeleteOptions{}))
	defer w.grant(t)
	recordertest.Eventually(t.Context(), t, "the right is gone", func() bool {
		return listing.get("/timeline/v1/tail?cluster="+mine).code == http.StatusForbidden
	})
	for _, path := range dataPaths {
		path, _, _ = strings.Cut(path, "?")
		require.Equal(t, http.StatusForbidden, listing.get(path+"?cluster="+mine).code, path)
	}
}
