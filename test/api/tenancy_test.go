package api_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"

	"github.com/kuberewind/kuberewind/apiserver"
	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/controlplane/objects"
	scene "github.com/kuberewind/kuberewind/internal/scene/record"
)

const tenant = "tenant"

// A tenancy is a namespace of which an account may read the configmaps, secrets and widgets, beside the record of another cluster.
type tenancy struct {
	t      *testing.T
	system *system
	client *kubernetes.Clientset
	maker  *objects.Maker
	uid    string // of the cluster
	scene  *history.Record
	other  *strangeAPI // the live API of the scene's cluster
	reader string      // a token of the account
	admin  string      // a token of a user who may read all
	server *rest.Config
	begin  int64 // the revision when it began
}

func newTenancy(t *testing.T, s *system) *tenancy {
	t.Helper()
	o := &tenancy{t: t, system: s, maker: objects.New(t, s.plane.Config()), uid: s.record.Cluster().UID, other: newStrangeAPI(t), begin: s.revision(t)}
	var err error
	o.client, err = kubernetes.NewForConfig(s.plane.Config())
	require.NoError(t, err)
	require.NoError(t, scene.Into(t.Context(), s.databaseURL))
	o.scene, err = history.Open(t.Context(), s.databaseURL, history.Options{Cluster: scene.Cluster})
	require.NoError(t, err)
	t.Cleanup(o.scene.Close)
	o.admin = s.plane.Config().BearerToken
	o.makeNamespace()
	o.reader = o.account("reader")
	_, err = o.client.RbacV1().Roles(tenant).Create(t.Context(), &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "reader"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"configmaps", "secrets"}, Verbs: []string{"get", "list", "watch"}},
		{APIGroups: []string{"example.com"}, Resources: []string{"widgets"}, Verbs: []string{"get", "list", "watch"}},
	}}, metav1.CreateOptions{})
	require.NoError(t, err)
	o.grant()
	o.makeServer()
	return o
}

// account makes an account of the namespace, and gives a token of it.
func (o *tenancy) account(name string) (token string) {
	_, err := o.client.CoreV1().ServiceAccounts(tenant).Create(o.t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	require.NoError(o.t, err)
	request, err := o.client.CoreV1().ServiceAccounts(tenant).CreateToken(o.t.Context(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	require.NoError(o.t, err)
	return request.Status.Token
}

// makeServer gives replay serve an identity with the rights that the documentation names.
func (o *tenancy) makeServer() {
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: tenant, Name: "replay"}}
	o.server = rest.AnonymousClientConfig(o.system.plane.Config())
	o.server.BearerToken = o.account("replay")
	_, err := o.client.RbacV1().ClusterRoleBindings().Create(o.t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "replay"}, Subjects: subjects,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:auth-delegator"}}, metav1.CreateOptions{})
	require.NoError(o.t, err)
	_, err = o.client.RbacV1().RoleBindings("kube-system").Create(o.t.Context(), &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "replay"}, Subjects: subjects,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "extension-apiserver-authentication-reader"}}, metav1.CreateOptions{})
	require.NoError(o.t, err)
}

func (o *tenancy) makeNamespace() {
	_, err := o.client.CoreV1().Namespaces().Create(o.t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: tenant}}, metav1.CreateOptions{})
	require.NoError(o.t, err)
}

// fill makes what the tenant has.
func (o *tenancy) fill() {
	_, err := o.client.CoreV1().ConfigMaps(tenant).Create(o.t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings"}}, metav1.CreateOptions{})
	require.NoError(o.t, err)
	_, err = o.client.CoreV1().ConfigMaps(tenant).Create(o.t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "more"}}, metav1.CreateOptions{})
	require.NoError(o.t, err)
	o.maker.Create(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": "mine", "namespace": tenant},
	}})
}

// remove deletes the namespace, as its controller would. Accounts and roles stay: they are of no interest here.
func (o *tenancy) remove() {
	ctx := o.t.Context()
	require.NoError(o.t, o.client.CoreV1().ConfigMaps(tenant).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}))
	widgets := o.maker.Resource(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}, tenant)
	require.NoError(o.t, widgets.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}))
	require.NoError(o.t, o.client.CoreV1().Namespaces().Delete(ctx, tenant, metav1.DeleteOptions{}))
	namespace, err := o.client.CoreV1().Namespaces().Get(ctx, tenant, metav1.GetOptions{})
	require.NoError(o.t, err)
	namespace.Spec.Finalizers = nil
	_, err = o.client.CoreV1().Namespaces().Finalize(ctx, namespace, metav1.UpdateOptions{})
	require.NoError(o.t, err)
}

func (o *tenancy) removeKind() {
	definitions := o.maker.Resource(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}, "")
	require.NoError(o.t, definitions.Delete(o.t.Context(), "widgets.example.com", metav1.DeleteOptions{}))
}

func (o *tenancy) secretElsewhere() {
	_, err := o.client.CoreV1().Secrets("shop").Create(o.t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{GenerateName: "elsewhere-"}}, metav1.CreateOptions{})
	require.NoError(o.t, err)
}

func (o *tenancy) grant() {
	_, err := o.client.RbacV1().RoleBindings(tenant).Create(o.t.Context(), &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "reader"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: tenant, Name: "reader"}},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "reader"}}, metav1.CreateOptions{})
	require.NoError(o.t, err)
}

func (o *tenancy) withdraw() {
	require.NoError(o.t, o.client.RbacV1().RoleBindings(tenant).Delete(o.t.Context(), "reader", metav1.DeleteOptions{}))
}

// recorded returns when all that was written is on record.
func (o *tenancy) recorded() { o.system.awaitRecorded(o.t, o.begin) }

// root is that of the last instant on record.
func (o *tenancy) root() string {
	extent, err := o.system.record.Extent(o.t.Context())
	require.NoError(o.t, err)
	return apiserver.Path(o.uid, extent.LastSeq)
}

// version is the resource version of the object that was written last.
func (o *tenancy) version() string {
	found, err := o.client.CoreV1().ConfigMaps(tenant).Get(o.t.Context(), "more", metav1.GetOptions{})
	require.NoError(o.t, err)
	return found.ResourceVersion
}

// tokenUntil signs a token of the account as the API server does.
func (o *tenancy) tokenUntil(left time.Duration) string {
	account, err := o.client.CoreV1().ServiceAccounts(tenant).Get(o.t.Context(), "reader", metav1.GetOptions{})
	require.NoError(o.t, err)
	key, err := keyutil.PrivateKeyFromFile(filepath.Join(o.system.plane.Dir(), "service-accounts.key"))
	require.NoError(o.t, err)
	const issuer = "https://kubernetes.default.svc"
	end := time.Now().Add(left)
	claims, err := json.Marshal(map[string]any{
		"iss": issuer, "aud": []string{issuer}, "sub": "system:serviceaccount:tenant:reader", "exp": end.Unix(), "iat": end.Add(-2 * time.Hour).Unix(), "nbf": end.Add(-2 * time.Hour).Unix(),
		"kubernetes.io": map[string]any{"namespace": tenant, "serviceaccount": map[string]any{"name": "reader", "uid": account.UID}},
	})
	require.NoError(o.t, err)
	text := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"ES256","typ":"JWT"}`)) + "." + base64.RawURLEncoding.EncodeToString(claims)
	digest := sha256.Sum256([]byte(text))
	r, s, err := ecdsa.Sign(rand.Reader, key.(*ecdsa.PrivateKey), digest[:])
	require.NoError(o.t, err)
	signature := make([]byte, 64)
	r.FillBytes(signature[:32])
	s.FillBytes(signature[32:])
	return text + "." + base64.RawURLEncoding.EncodeToString(signature)
}

// A clientCA signs certificates of clients.
type clientCA struct {
	file string
	cert *x509.Certificate
	key  crypto.Signer
}

func newClientCA(t *testing.T) *clientCA {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	ca := &clientCA{key: key, file: filepath.Join(t.TempDir(), "clients.crt")}
	ca.cert, err = cert.NewSelfSignedCACert(cert.Config{CommonName: "clients"}, key)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(ca.file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.cert.Raw}), 0o600))
	return ca
}

func (ca *clientCA) sign(t *testing.T, name string, groups ...string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name, Organization: groups},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, ca.cert, key.Public(), ca.key)
	require.NoError(t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}
