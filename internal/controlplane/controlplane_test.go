package controlplane_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kuberewind/kuberewind/internal/controlplane"
)

// patience bounds what must come, however busy the machine is.
const patience = 5 * time.Minute

func TestStopEndsAllProcessesAndRemovesAllFiles(t *testing.T) {
	plane := controlplane.ForTest(t, controlplane.Options{})
	processes := []int{plane.Etcd.PID(), plane.APIServer.PID()}

	kubeconfig, err := plane.Kubeconfig()
	require.NoError(t, err)
	kubectl := exec.CommandContext(t.Context(), plane.Kubectl(), "--kubeconfig", kubeconfig, "get", "namespaces", "-o", "name")
	output, err := kubectl.CombinedOutput()
	require.NoError(t, err, "%s", output)
	require.Contains(t, string(output), "namespace/kube-system")

	require.NoError(t, plane.Stop())
	for _, pid := range processes {
		require.ErrorIs(t, syscall.Kill(pid, 0), syscall.ESRCH)
	}
	require.NoDirExists(t, plane.Dir())
	require.NoError(t, plane.Stop(), "a second stop")
	_, err = plane.StartAPIServer(t.Context(), controlplane.APIServerOptions{})
	require.ErrorContains(t, err, "has been stopped")
}

func TestAFolderOfOnesOwnIsKeptAndStartedInAgain(t *testing.T) {
	options := controlplane.Options{Dir: filepath.Join(t.TempDir(), "plane")}
	first := controlplane.ForTest(t, options)
	_, err := controlplane.Start(t.Context(), options)
	require.ErrorContains(t, err, "runs in "+options.Dir+" already")
	createConfigMap(t, clientOf(t, first.Config()), "kept")
	require.NoError(t, first.Stop())

	second := controlplane.ForTest(t, options)
	_, err = getConfigMap(t, clientOf(t, second.Config()), "kept")
	require.NoError(t, err)
}

func TestAFailedStartShowsTheLogAndRemovesItsFiles(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	_, err := controlplane.Start(t.Context(), controlplane.Options{EtcdArgs: []string{"--no-such-flag"}})
	require.ErrorContains(t, err, "no-such-flag")
	entries, err := os.ReadDir(temporary)
	require.NoError(t, err)
	require.Empty(t, entries)
}

func TestUsersThatBreakTheTokenFileAreRefused(t *testing.T) {
	users := []controlplane.User{{Name: `a"b`}, {Name: "a", Groups: []string{"x,y"}}, {Name: controlplane.AdminName}, {}}
	for _, user := range users {
		_, err := controlplane.Start(t.Context(), controlplane.Options{Users: []controlplane.User{user}})
		require.ErrorContains(t, err, "user ")
	}
}

// TestOneControlPlane is one control plane's life: it is started once, because starting takes most of a test's time.
func TestOneControlPlane(t *testing.T) {
	plane := controlplane.ForTest(t, controlplane.Options{
		APIServer: controlplane.APIServerOptions{Audit: true},
		Users:     []controlplane.User{{Name: "reader", Groups: []string{"readers"}}},
	})
	uncached, err := plane.StartAPIServer(t.Context(), controlplane.APIServerOptions{Args: []string{"--watch-cache=false"}})
	require.NoError(t, err)

	t.Run("users have the rights that RBAC gives them", usersHaveTheirRights(plane))
	t.Run("etcd's history has every write once", historyIsWhole(plane))
	t.Run("the audit log counts requests and open watches", auditCounts(plane))
	t.Run("cutting connections ends watches and nothing else", cutEndsWatches(plane))
	t.Run("a paused component answers when it is continued", pauseHoldsAnswers(plane))
	t.Run("a compacted revision can be neither watched nor read", compactionForgets(plane, uncached))
	require.NoError(t, uncached.Stop(t.Context()))
	t.Run("restored data goes back, and its revisions with it", restoreGoesBack(plane))
	t.Run("a killed component comes back at its address with its data", restartKeepsDataAndAddress(plane))
}

func usersHaveTheirRights(plane *controlplane.ControlPlane) func(*testing.T) {
	return func(t *testing.T) {
		config, err := plane.APIServer.Config("reader")
		require.NoError(t, err)
		reader := clientOf(t, config)
		_, err = getConfigMap(t, reader, "any")
		require.True(t, apierrors.IsForbidden(err), "%v", err)

		admin := clientOf(t, plane.Config())
		_, err = admin.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: "read"},
			Rules:      []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"configmaps"}}},
		}, metav1.CreateOptions{})
		require.NoError(t, err)
		_, err = admin.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "readers"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "read"},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "readers"}},
		}, metav1.CreateOptions{})
		require.NoError(t, err)
		require.Eventually(t, func() bool {
			_, err := getConfigMap(t, reader, "any")
			return apierrors.IsNotFound(err)
		}, patience, 20*time.Millisecond, "the server's own watch must show it the binding")

		config.BearerToken = "unknown"
		_, err = getConfigMap(t, clientOf(t, config), "any")
		require.True(t, apierrors.IsUnauthorized(err), "%v", err)
		_, err = plane.APIServer.Config("nobody")
		require.ErrorContains(t, err, `without a user "nobody"`)
	}
}

func pauseHoldsAnswers(plane *controlplane.ControlPlane) func(*testing.T) {
	return func(t *testing.T) {
		client := clientOf(t, plane.Config())
		for _, component := range []*controlplane.Component{plane.APIServer.Component, plane.Etcd.Component} {
			require.NoError(t, component.Pause())
			require.NoError(t, component.Pause(), "a second pause")
			answer := make(chan error, 1)
			go func() {
				// Creating needs etcd, whatever the watch cache holds.
				answer <- tryCreateConfigMap(t, client, "paused-"+component.Name())
			}()
			select {
			case err := <-answer:
				t.Fatalf("%s answered while it was paused: %v", component.Name(), err)
			case <-time.After(200 * time.Millisecond): // there is no signal for nothing happening
			}
			require.NoError(t, component.Continue())
			require.NoError(t, <-answer)
		}
	}
}

func restartKeepsDataAndAddress(plane *controlplane.ControlPlane) func(*testing.T) {
	return func(t *testing.T) {
		kubeconfig, err := plane.Kubeconfig()
		require.NoError(t, err)
		client := clientOf(t, plane.Config())
		createConfigMap(t, client, "durable")

		require.NoError(t, plane.APIServer.Kill())
		require.NoError(t, plane.Etcd.Kill())
		require.Zero(t, plane.APIServer.PID())
		_, err = getConfigMap(t, client, "durable")
		require.True(t, utilnet.IsConnectionRefused(err), "a server that is down is not listening: %v", err)
		require.ErrorContains(t, plane.APIServer.Pause(), "not running")

		require.NoError(t, plane.Etcd.Start(t.Context()))
		require.NoError(t, plane.APIServer.Start(t.Context()))
		require.ErrorContains(t, plane.APIServer.Start(t.Context()), "running already")
		_, err = getConfigMap(t, client, "durable")
		require.NoError(t, err, "with the client made before")
		config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
		require.NoError(t, err)
		_, err = getConfigMap(t, clientOf(t, config), "durable")
		require.NoError(t, err, "with the kubeconfig written before")
	}
}

// clientOf returns a client whose connections go with the test.
func clientOf(t *testing.T, config *rest.Config) kubernetes.Interface {
	t.Helper()
	httpClient, err := rest.HTTPClientFor(config)
	require.NoError(t, err)
	t.Cleanup(func() { utilnet.CloseIdleConnectionsFor(httpClient.Transport) })
	client, err := kubernetes.NewForConfigAndClient(config, httpClient)
	require.NoError(t, err)
	return client
}

func createConfigMap(t *testing.T, client kubernetes.Interface, name string) {
	t.Helper()
	require.NoError(t, tryCreateConfigMap(t, client, name))
}

func tryCreateConfigMap(t *testing.T, client kubernetes.Interface, name string) error {
	t.Helper()
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
	_, err := client.CoreV1().ConfigMaps("default").Create(t.Context(), object, metav1.CreateOptions{})
	return err
}

func getConfigMap(t *testing.T, client kubernetes.Interface, name string) (*corev1.ConfigMap, error) {
	t.Helper()
	return client.CoreV1().ConfigMaps("default").Get(t.Context(), name, metav1.GetOptions{})
}
