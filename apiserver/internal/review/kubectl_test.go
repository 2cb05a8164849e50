package review_test

import (
	"bytes"
	"errors"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// kubectl compares kubectl's output for both servers.
func (p *pair) kubectl(t *testing.T) {
	theirs, err := p.plane.Kubeconfig()
	require.NoError(t, err)
	ours := kubeconfig(t, p.ours.url)
	run := func(config string, arguments ...string) result { return p.runKubectl(t, config, arguments...) }
	for _, arguments := range [][]string{
		{"auth", "can-i", "get", "secrets/db", "-n", "shop", "--as", "jane"},
		{"auth", "whoami", "--as", "system:serviceaccount:shop:web"},
	} {
		require.Equal(t, run(theirs, arguments...).out, run(ours, arguments...).out, "%q", arguments)
	}
	list := []string{"auth", "can-i", "--list", "-n", "shop", "--as", "jane"}
	want, got := run(theirs, list...), run(ours, list...)
	require.Equal(t, sorted(want.out), sorted(got.out))
	require.Contains(t, got.err, "Warning: the list may be incomplete: "+onlyRBAC)

	require.Equal(t, result{out: "yes\n", err: "Warning: " + onlyRBAC + "\n"}, run(ours, "auth", "can-i", "get", "secrets/db", "-n", "shop", "--as", "jane"))
	require.Equal(t, result{out: "no - " + onlyRBAC + "\n", code: 1}, run(ours, "auth", "can-i", "get", "secrets/db", "-n", "bank", "--as", "otto"))
	require.Equal(t, result{out: "yes\n"}, run(ours, "auth", "can-i", "list", "pods", "-n", "shop"))
	require.Equal(t, result{out: "no - the past is read-only\n", code: 1}, run(ours, "auth", "can-i", "delete", "pods", "-n", "shop"))
	require.Equal(t, result{out: "no - logs are not on record: see the Pod's Events, and its versions (replay log pod/NAME)\n", code: 1},
		run(ours, "auth", "can-i", "get", "pods", "--subresource=log", "-n", "shop"))
	require.Contains(t, run(ours, "auth", "whoami").out, "ada")
}

type result struct {
	out, err string
	code     int
}

func (p *pair) runKubectl(t *testing.T, config string, arguments ...string) result {
	t.Helper()
	command := exec.CommandContext(t.Context(), p.plane.Kubectl(), append([]string{"--kubeconfig", config, "--cache-dir", filepath.Join(filepath.Dir(config), "cache")}, arguments...)...)
	var out, stderr bytes.Buffer
	command.Stdout, command.Stderr = &out, &stderr
	err := command.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	return result{out: out.String(), err: stderr.String(), code: command.ProcessState.ExitCode()}
}

func kubeconfig(t *testing.T, url string) string {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["past"] = &clientcmdapi.Cluster{Server: url}
	config.Contexts["past"] = &clientcmdapi.Context{Cluster: "past"}
	config.CurrentContext = "past"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(*config, path))
	return path
}
