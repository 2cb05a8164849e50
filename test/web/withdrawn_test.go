package web_test

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"log/slog"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"

	"github.com/kuberewind/kuberewind/internal/controlplane"
	"github.com/kuberewind/kuberewind/internal/pgtest"
	"github.com/kuberewind/kuberewind/internal/scenetest"
	"github.com/kuberewind/kuberewind/internal/serve/delegate"
	"github.com/kuberewind/kuberewind/internal/serve/page"
	"github.com/kuberewind/kuberewind/timeline"
	"github.com/kuberewind/kuberewind/web"
)

// Users of the live cluster. The viewer may list what the role view names, which is not everything.
const (
	lister = "lister"
	viewer = "viewer"
)

// A right that is withdrawn while the page is open takes what it shows away.
func TestThePageShowsNoDataOnceTheRightIsWithdrawn(t *testing.T) {
	if !*all {
		t.Skip("it runs a control plane: make test-web runs it")
	}
	chromium := need(t)
	plane := controlplane.ForTest(t, controlplane.Options{Users: []controlplane.User{{Name: lister}, {Name: viewer}}})
	client, err := kubernetes.NewForConfig(plane.Config())
	require.NoError(t, err)
	_, err = client.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "timeline-reader"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"list"}},
	}}, metav1.CreateOptions{})
	require.NoError(t, err)
	bind := func(user, role string) {
		_, err := client.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: user}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, Name: user}},
		}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	bind(lister, "timeline-reader")
	bind(viewer, "view")
	certificate, key := certified(t)
	shared := &site{shared(t, plane, certificate), map[string]func(){
		"withdraw": func() {
			require.NoError(t, client.RbacV1().ClusterRoleBindings().Delete(t.Context(), lister, metav1.DeleteOptions{}))
		},
		"grant": func() { bind(lister, "timeline-reader") },
	}}
	happening(t, chromium, "badinput/withdrawn.test.mjs", map[string]*site{"shared": shared},
		"KUBEREWIND_KEY="+key, "KUBEREWIND_LISTER="+tokenOf(t, plane, lister), "KUBEREWIND_VIEWER="+tokenOf(t, plane, viewer))
}

func tokenOf(t *testing.T, plane *controlplane.ControlPlane, user string) string {
	t.Helper()
	config, err := plane.APIServer.Config(user)
	require.NoError(t, err)
	return config.BearerToken
}

// certified gives the certificate of a server, and the hash of its key as Chromium takes it.
func certified(t *testing.T) (certificate tls.Certificate, key string) {
	t.Helper()
	text, private, err := cert.GenerateSelfSignedCertKey("127.0.0.1", nil, nil)
	require.NoError(t, err)
	certificate, err = tls.X509KeyPair(text, private)
	require.NoError(t, err)
	parsed, err := x509.ParseCertificate(certificate.Certificate[0])
	require.NoError(t, err)
	sum := sha256.Sum256(parsed.RawSubjectPublicKeyInfo)
	return certificate, base64.StdEncoding.EncodeToString(sum[:])
}

// shared serves the scene to users of a live cluster.
func shared(t *testing.T, plane *controlplane.ControlPlane, certificate tls.Certificate) string {
	t.Helper()
	c := cluster(open(t, pgtest.New(t, scenetest.Record)), "")
	live, err := delegate.New(delegate.Options{Mode: delegate.Self, Clusters: map[string]*rest.Config{c.UID: plane.Config()}})
	require.NoError(t, err)
	queries := timeline.New(timeline.Options{Clusters: []timeline.Cluster{c}})
	t.Cleanup(queries.Close)
	server, err := page.Listen(page.Options{
		Address: "127.0.0.1:0", Shared: &page.Shared{Certificate: certificate, Live: live}, Web: web.Handler(), Timelines: map[string]http.Handler{c.UID: queries},
		Sessions: http.NotFoundHandler(), Log: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx) }()
	t.Cleanup(func() { stop(); require.NoError(t, <-ended) })
	return server.Access().URL
}
