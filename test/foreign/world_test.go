// Package foreign_test runs test suites that others wrote against the API of the past. They write to a real kube-apiserver and read from its record,
// by package split.
package foreign_test

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/kuberewind/kuberewind/apiserver"
	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/controlplane"
	"github.com/kuberewind/kuberewind/internal/pgtest"
	"github.com/kuberewind/kuberewind/internal/recordertest"
	"github.com/kuberewind/kuberewind/test/foreign/split"
)

func TestMain(m *testing.M) { recordertest.Main(m, "recorder") }

// adminToken is the one that test/cmd shows.
const adminToken = "admin-token"

// A world is a control plane that is recorded, and the proxy through which clients reach both.
type world struct {
	plane    *controlplane.ControlPlane
	recorder *recordertest.Process
	server   *httptest.Server // the proxy
}

// newWorld starts an API server as Kubernetes' test-cmd.sh does.
func newWorld(t *testing.T) *world {
	t.Helper()
	plane := controlplane.ForTest(t, controlplane.Options{
		Users: []controlplane.User{{Name: "test-admin", Groups: []string{user.SystemPrivilegedGroup}, Token: adminToken}},
		APIServer: controlplane.APIServerOptions{Args: []string{
			"--enable-admission-plugins=LimitRanger,ResourceQuota",
			"--disable-admission-plugins=ServiceAccount,DefaultStorageClass,DefaultTolerationSeconds,MutatingAdmissionWebhook,ValidatingAdmissionWebhook,StorageObjectInUseProtection",
		}},
	})
	kubeconfig, err := plane.Kubeconfig()
	require.NoError(t, err)
	database := pgtest.New(t, pgtest.EmptyRecord)
	recorder := recordertest.Start(t, "--kubeconfig", kubeconfig, "--database", database.URL(), "--data-dir", t.TempDir(), "--cluster-name", "test", "--listen", "127.0.0.1:0")
	recorder.AwaitReady(t)
	record, err := history.Open(t.Context(), database.URL(), history.Options{})
	require.NoError(t, err)
	t.Cleanup(record.Close)
	return &world{plane: plane, recorder: recorder, server: serve(t, plane, record)}
}

// serve serves the record at its end, behind the proxy.
func serve(t *testing.T, plane *controlplane.ControlPlane, record *history.Record) *httptest.Server {
	t.Helper()
	past, err := apiserver.New(apiserver.Options{Records: []*history.Record{record}})
	require.NoError(t, err)
	t.Cleanup(past.Close)
	proxy, err := split.New(plane.Config(), asAdmin(past), record)
	require.NoError(t, err)
	server := httptest.NewUnstartedServer(proxy)
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	return server
}

// asAdmin names the caller, as the listener in front of the handler does.
func asAdmin(next http.Handler) http.Handler {
	admin := &user.DefaultInfo{Name: controlplane.AdminName, Groups: []string{user.SystemPrivilegedGroup, user.AllAuthenticated}}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(request.WithUser(r.Context(), admin)))
	})
}

// kubeconfig leads to the proxy.
func (w *world) kubeconfig(t *testing.T) string {
	t.Helper()
	config := clientcmdapi.NewConfig()
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: w.server.Certificate().Raw})
	config.Clusters["split"] = &clientcmdapi.Cluster{Server: w.server.URL, CertificateAuthorityData: authority}
	config.AuthInfos["admin"] = &clientcmdapi.AuthInfo{Token: adminToken}
	config.Contexts["split"] = &clientcmdapi.Context{Cluster: "split", AuthInfo: "admin"}
	config.CurrentContext = "split"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(*config, path))
	return path
}
