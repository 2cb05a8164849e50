// Package deploy_test applies deploy/kubernetes to a real API server, by the commands of docs/install.md, and runs the recorder under
// the ServiceAccount and with the settings that this makes.
package deploy_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/kuberewind/kuberewind/internal/controlplane"
	"github.com/kuberewind/kuberewind/internal/controlplane/binaries"
	"github.com/kuberewind/kuberewind/internal/pgtest"
	"github.com/kuberewind/kuberewind/internal/recordertest"
)

const (
	root      = "../.."
	namespace = "kuberewind"
	account   = "kuberewind-recorder"
)

func TestMain(m *testing.M) { recordertest.Main(m, "recorder") }

func TestTheInstructionsDeployARecorderThatOnlyReadsTheCluster(t *testing.T) {
	plane := controlplane.ForTest(t, controlplane.Options{})
	database := pgtest.New(t, nil)
	admin, err := plane.APIServer.Kubeconfig(controlplane.AdminName)
	require.NoError(t, err)
	follow(t, instructions(t), "KUBECONFIG="+admin, "DATABASE_URL="+database.URL())

	client := kubernetes.NewForConfigOrDie(plane.Config())
	deployed, err := client.AppsV1().Deployments(namespace).Get(t.Context(), account, metav1.GetOptions{})
	require.NoError(t, err)
	admitted(t, client, deployed)
	authorityMounted(t, deployed)

	token := tokenOf(t, client)
	arguments := append(flagsOf(t, client, deployed), "--kubeconfig", kubeconfig(t, plane, token),
		// Outside a Pod the recorder does not know its namespace.
		"--leader-elect", "lease", "--lease-namespace", namespace, "--event-namespace", namespace, "--listen", "127.0.0.1:0", "--data-dir", t.TempDir())
	recorder := recordertest.Start(t, arguments...)
	recorder.AwaitReady(t)
	code, said := recordertest.RunProgram(t, "recorder", append([]string{"check"}, arguments...)...)
	require.Zero(t, code, said)

	_, err = client.CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	pool := database.Pool(t)
	recordertest.Eventually(t.Context(), t, "the ConfigMap is on record", func() bool {
		var there bool
		row := pool.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM kuberewind.deltas WHERE resource = 'configmaps' AND namespace = 'default' AND name = 'settings')`)
		return row.Scan(&there) == nil && there
	})
	lease, err := client.CoordinationV1().Leases(namespace).Get(t.Context(), account, metav1.GetOptions{})
	require.NoError(t, err)
	require.NotEmpty(t, *lease.Spec.HolderIdentity)
	recorder.Terminate(t)

	for _, forbidden := range []string{"configmaps", "secrets", "pods", "leases.coordination.k8s.io"} {
		require.Equal(t, "no", canI(t, plane, token, "create", forbidden, "default"), forbidden)
		require.Equal(t, "no", canI(t, plane, token, "delete", forbidden, namespace), forbidden)
	}
	require.Equal(t, "yes", canI(t, plane, token, "watch", "secrets", "default"))
}

// instructions are the block of docs/install.md that applies the folder.
func instructions(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(root, "docs/install.md"))
	require.NoError(t, err)
	for _, block := range regexp.MustCompile("(?ms)^```sh\n(.*?)^```").FindAllStringSubmatch(string(page), -1) {
		if strings.Contains(block[1], "kubectl apply -k") {
			return block[1]
		}
	}
	require.Fail(t, "docs/install.md has no block with kubectl apply -k")
	return ""
}

// follow runs commands as a reader does, in a folder that has deploy/.
func follow(t *testing.T, commands string, environment ...string) {
	t.Helper()
	folder := t.TempDir()
	require.NoError(t, os.CopyFS(filepath.Join(folder, "deploy"), os.DirFS(filepath.Join(root, "deploy"))))
	programs, err := binaries.Find(binaries.Kubectl)
	require.NoError(t, err)
	shell := exec.CommandContext(t.Context(), "sh", "-euc", commands)
	shell.Dir = folder
	shell.Env = append(os.Environ(), append(environment, "PATH="+programs+":"+os.Getenv("PATH"))...)
	out, err := shell.CombinedOutput()
	require.NoError(t, err, string(out))
	require.NotContains(t, string(out), "Warning", "the namespace admits no Pod that is not restricted")
}

// admitted creates a Pod of the Deployment, which nothing here would do: the namespace must admit it.
func admitted(t *testing.T, client kubernetes.Interface, deployed *appsv1.Deployment) {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: deployed.Spec.Template.ObjectMeta, Spec: deployed.Spec.Template.Spec}
	pod.Name = "one"
	_, err := client.CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	require.NoError(t, err)
	require.Greater(t, *pod.Spec.TerminationGracePeriodSeconds, int64(25), "the recorder takes --drain-timeout to write what is queued")
}

// flagsOf are the settings of the Deployment's container. Files of its volumes become files here.
func flagsOf(t *testing.T, client kubernetes.Interface, deployed *appsv1.Deployment) (flags []string) {
	t.Helper()
	container := deployed.Spec.Template.Spec.Containers[0]
	for _, variable := range container.Env {
		value := variable.Value
		if from := variable.ValueFrom; from != nil {
			value = string(secret(t, client, from.SecretKeyRef.Name)[from.SecretKeyRef.Key])
		}
		if strings.HasSuffix(variable.Name, "_FILE") {
			value = mounted(t, client, deployed, value)
		}
		setting, ok := strings.CutPrefix(variable.Name, "RECORDER_")
		require.True(t, ok, variable.Name)
		flags = append(flags, "--"+strings.ReplaceAll(strings.ToLower(setting), "_", "-")+"="+value)
	}
	return flags
}

func secret(t *testing.T, client kubernetes.Interface, name string) map[string][]byte {
	t.Helper()
	found, err := client.CoreV1().Secrets(namespace).Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	return found.Data
}

// mounted writes the file that the kubelet would mount at the path, and returns its path here.
func mounted(t *testing.T, client kubernetes.Interface, deployed *appsv1.Deployment, path string) string {
	t.Helper()
	spec := deployed.Spec.Template.Spec
	for _, mount := range spec.Containers[0].VolumeMounts {
		file, ok := strings.CutPrefix(path, mount.MountPath+"/")
		if !ok {
			continue
		}
		for _, volume := range spec.Volumes {
			if volume.Name != mount.Name || volume.Secret == nil {
				continue
			}
			here := filepath.Join(t.TempDir(), file)
			require.Equal(t, file, volume.Secret.Items[0].Path)
			require.NoError(t, os.WriteFile(here, secret(t, client, volume.Secret.SecretName)[volume.Secret.Items[0].Key], os.FileMode(*volume.Secret.DefaultMode)))
			return here
		}
	}
	require.Fail(t, "no volume at "+path)
	return ""
}

// authorityMounted compares how docs/install.md names the authority of the database's certificate with what is mounted.
func authorityMounted(t *testing.T, deployed *appsv1.Deployment) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(root, "docs/install.md"))
	require.NoError(t, err)
	named := regexp.MustCompile(`kubectl create configmap (\S+) --namespace \S+ --from-file=(\S+)`).FindStringSubmatch(string(page))
	require.NotNil(t, named)
	spec := deployed.Spec.Template.Spec
	for _, volume := range spec.Volumes {
		if volume.ConfigMap == nil || volume.ConfigMap.Name != named[1] {
			continue
		}
		require.True(t, *volume.ConfigMap.Optional, "a database with a public certificate needs none")
		for _, mount := range spec.Containers[0].VolumeMounts {
			if mount.Name == volume.Name {
				require.Contains(t, string(page), "sslrootcert="+mount.MountPath+"/"+named[2])
				return
			}
		}
	}
	require.Fail(t, "no volume of the ConfigMap "+named[1])
}

func tokenOf(t *testing.T, client kubernetes.Interface) string {
	t.Helper()
	request, err := client.CoreV1().ServiceAccounts(namespace).CreateToken(t.Context(), account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	require.NoError(t, err)
	return request.Status.Token
}

// kubeconfig writes one for the bearer of the token.
func kubeconfig(t *testing.T, plane *controlplane.ControlPlane, token string) string {
	t.Helper()
	config := plane.Config()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(api.Config{
		Clusters:       map[string]*api.Cluster{"it": {Server: config.Host, CertificateAuthorityData: config.CAData, CertificateAuthority: config.CAFile}},
		AuthInfos:      map[string]*api.AuthInfo{"recorder": {Token: token}},
		Contexts:       map[string]*api.Context{"it": {Cluster: "it", AuthInfo: "recorder"}},
		CurrentContext: "it",
	}, path))
	return path
}

// canI is what kubectl says of the bearer's right.
func canI(t *testing.T, plane *controlplane.ControlPlane, token, verb, resource, in string) string {
	t.Helper()
	programs, err := binaries.Find(binaries.Kubectl)
	require.NoError(t, err)
	out, err := exec.CommandContext(context.WithoutCancel(t.Context()), filepath.Join(programs, binaries.Kubectl),
		"--kubeconfig", kubeconfig(t, plane, token), "auth", "can-i", verb, resource, "-n", in).Output()
	var ended *exec.ExitError
	if err != nil {
		require.ErrorAs(t, err, &ended)
	}
	return strings.TrimSpace(string(out))
}
