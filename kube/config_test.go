package kube

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// kubeconfig writes a kubeconfig and returns its path.
func kubeconfig(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

const (
	clusters = `apiVersion: v1
kind: Config
current-context: blue
clusters:
- {name: blue-cluster, cluster: {server: "https://blue:6443"}}
contexts:
- {name: blue, context: {cluster: blue-cluster, user: someone, namespace: shop}}
- {name: green, context: {cluster: green-cluster, user: someone}}
`
	users = `apiVersion: v1
kind: Config
current-context: green
clusters:
- {name: green-cluster, cluster: {server: "https://green:6443"}}
- {name: blue-cluster, cluster: {server: "https://never"}}
users:
- {name: someone, user: {token: secret}}
`
)

// alone hides the machine's own kubeconfig and service account.
func alone(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	t.Setenv("POD_NAMESPACE", "")
}

func TestSeveralKubeconfigsAreMergedAsByKubectl(t *testing.T) {
	alone(t)
	t.Setenv("KUBECONFIG", kubeconfig(t, clusters)+string(os.PathListSeparator)+"/does/not/exist"+string(os.PathListSeparator)+kubeconfig(t, users))
	config, err := LoadConfig(ConfigOptions{})
	require.NoError(t, err)
	require.Equal(t, "https://blue:6443", config.REST.Host)
	require.Equal(t, "secret", config.REST.BearerToken)
	require.Equal(t, Config{REST: config.REST, Namespace: "shop", Cluster: "blue-cluster", Context: "blue"}, *config)

	config, err = LoadConfig(ConfigOptions{Context: "green"})
	require.NoError(t, err)
	require.Equal(t, "https://green:6443", config.REST.Host)
	require.Equal(t, "default", config.Namespace)
	require.Equal(t, "green-cluster", config.Cluster)
}

func TestAGivenKubeconfigWinsOverTheEnvironment(t *testing.T) {
	alone(t)
	t.Setenv("KUBECONFIG", kubeconfig(t, "nonsense: ["))
	config, err := LoadConfig(ConfigOptions{Kubeconfig: kubeconfig(t, clusters+"users: [{name: someone, user: {}}]\n")})
	require.NoError(t, err)
	require.Equal(t, "https://blue:6443", config.REST.Host)
}

func TestAnErrorNamesTheFilesThatWereTried(t *testing.T) {
	alone(t)
	tests := map[string]struct {
		options ConfigOptions
		want    []string
	}{
		"a file that is missing": {ConfigOptions{Kubeconfig: "/no/such/file"}, []string{"/no/such/file does not exist", "--kubeconfig"}},
		"a file of no sense":     {ConfigOptions{Kubeconfig: kubeconfig(t, "clusters: [")}, []string{"cannot be read", "config"}},
		"another kind of file":   {ConfigOptions{Kubeconfig: kubeconfig(t, "kind: Pod\napiVersion: v1\n")}, []string{"cannot be read", "Pod"}},
		"a missing context":      {ConfigOptions{Kubeconfig: kubeconfig(t, clusters), Context: "red"}, []string{`context "red", given by --context, does not exist`, "there are: blue, green"}},
		"a current-context that is missing": {ConfigOptions{Kubeconfig: kubeconfig(t, "current-context: red\ncontexts: [{name: a, context: {cluster: b}}]\n")},
			[]string{`context "red", named as current-context, does not exist`, "there are: a"}},
		"no current-context":         {ConfigOptions{Kubeconfig: kubeconfig(t, "contexts: [{name: a, context: {cluster: b}}]\n")}, []string{"names no current-context; there are: a"}},
		"no contexts":                {ConfigOptions{Kubeconfig: kubeconfig(t, "current-context: red\nclusters: [{name: c, cluster: {server: x}}]\n")}, []string{`context "red"`, "there are no contexts in"}},
		"a context without cluster":  {ConfigOptions{Kubeconfig: kubeconfig(t, clusters), Context: "green"}, []string{`context "green" names the cluster "green-cluster", which is not in`, "there are: blue-cluster"}},
		"nothing at all":             {ConfigOptions{}, []string{"none (missing)", "service account of a pod", "--kubeconfig", "KUBECONFIG"}},
		"a context but no file":      {ConfigOptions{Context: "blue"}, []string{`context "blue", given by --context, does not exist`, "none (missing)"}},
		"a file without any content": {ConfigOptions{Kubeconfig: kubeconfig(t, "")}, []string{"service account of a pod"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := LoadConfig(test.options)
			for _, want := range test.want {
				require.ErrorContains(t, err, want)
			}
		})
	}
}
