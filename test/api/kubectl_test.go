package api_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/kuberewind/kuberewind/internal/recordertest"
)

// sameOutput runs kubectl against both servers.
func sameOutput(t *testing.T, s *system) {
	kubeconfig, err := s.plane.Kubeconfig()
	require.NoError(t, err)
	theirs := &kubectl{program: s.plane.Kubectl(), kubeconfig: kubeconfig, home: t.TempDir()}
	ours := &kubectl{program: s.plane.Kubectl(), kubeconfig: kubeconfigOf(t, s.ours.config.Host), home: t.TempDir()}
	for _, command := range []string{
		"get pods -n shop", "get pods -A -o wide", "get deploy,rs,svc,cm,nodes -n shop", "get pod web-1 -n shop -o yaml", "get widgets -n shop -o yaml --show-managed-fields", "get deploy web -n shop --subresource=scale", "get wd big -n shop --subresource=scale -o yaml", "get po web-1 -n shop --subresource=status", "get wd -A", "get events -n shop",
		"get pods -A -l tier=front -o name", "get pods -A --field-selector=status.phase=Running -o json", "get pods -A --chunk-size=1", "get pods nobody -n shop", "get nobodies", "get all -n shop",
		"get --raw /version", "version -o json", "describe pod web-2 -n shop", "describe node worker-1", "describe deploy web -n shop", "describe svc web -n shop", "describe widget big -n shop",
		"explain pod.spec.containers", "explain widgets.spec", "explain deployments --recursive", "api-resources --verbs=list,watch", "api-versions", "events -n shop", "wait --for=jsonpath={.spec.size} widget/small -n shop --timeout=5s", "rollout history deploy/web -n shop",
		"get cm -n shop -w --request-timeout=10s", "get pods -n shop -w -o name --request-timeout=10s",
	} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			theirs, ours := theirs.run(t, command), ours.run(t, command)
			require.Equal(t, withoutAges(theirs.stdout), withoutAges(ours.stdout), ours.stderr)
			require.Equal(t, theirs.stderr, withoutWarnings(ours.stderr))
			require.Equal(t, theirs.code, ours.code)
		})
	}
	for _, question := range []string{"list pods -n shop --as jane", "list secrets -n shop --as jane", "list pods --as jane", "list pods -n shop --as bob", "delete pods -n shop --as bob"} {
		t.Run("auth can-i "+question, func(t *testing.T) {
			t.Parallel()
			theirs, ours := theirs.run(t, "auth can-i "+question), ours.run(t, "auth can-i "+question)
			answer, _, _ := strings.Cut(ours.stdout, " - ") // then comes that only RBAC is on record
			require.Equal(t, strings.TrimSpace(theirs.stdout), strings.TrimSpace(answer))
			require.Equal(t, theirs.code, ours.code)
		})
	}
	t.Run("what would write is refused", func(t *testing.T) {
		t.Parallel()
		require.Equal(t, "yes\n", ours.run(t, "auth can-i list pods -n shop").stdout)
		require.Equal(t, "no\n", strings.Split(ours.run(t, "auth can-i delete pods -n shop").stdout, " ")[0]+"\n")
		refused := ours.run(t, "delete pod web-1 -n shop --wait=false")
		require.Equal(t, 1, refused.code)
		require.Contains(t, refused.stderr, "MethodNotAllowed")
		manifest := filepath.Join(t.TempDir(), "settings.yaml")
		require.NoError(t, os.WriteFile(manifest, []byte("{apiVersion: v1, kind: ConfigMap, metadata: {name: new}}"), 0o600))
		for _, command := range []string{"apply -n shop -f " + manifest, "apply --server-side -n shop -f " + manifest, "edit deploy web -n shop"} {
			refused = ours.run(t, command)
			require.Equal(t, 1, refused.code)
			require.Contains(t, refused.stderr, "the past is read-only: this is cluster test as it was at", command)
		}
	})
}

// kubeconfigOf leads to a server that asks for no credentials.
func kubeconfigOf(t *testing.T, server string) string {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["past"] = &clientcmdapi.Cluster{Server: server}
	config.Contexts["past"] = &clientcmdapi.Context{Cluster: "past"}
	config.CurrentContext = "past"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(*config, path))
	return path
}

// A kubectl has a configuration and a cache of its own.
type kubectl struct{ program, kubeconfig, home string }

type output struct {
	stdout, stderr string
	code           int
}

func (k *kubectl) run(t *testing.T, command string) output {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), recordertest.Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, k.program, strings.Fields(command)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + k.home, "TMPDIR=" + k.home, "KUBECONFIG=" + k.kubeconfig, "KUBE_EDITOR=sed -i s/maxSurge:/maxSurge:\\ 9\\ #/"}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	var exit *exec.ExitError
	if err := cmd.Run(); !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	return output{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// withoutAges removes durations, and makes the space between columns equal.
func withoutAges(text string) string {
	lines := strings.Split(ages.ReplaceAllString(text, "AGE"), "\n")
	for i, line := range lines {
		if strings.Contains(line, "AGE") || strings.Contains(line, "  ") && !strings.HasPrefix(line, " ") {
			lines[i] = strings.Join(strings.Fields(line), " ")
		}
	}
	return strings.Join(lines, "\n")
}

// withoutWarnings removes the warnings of our server.
func withoutWarnings(text string) string {
	var kept strings.Builder
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "Warning: ") {
			kept.WriteString(line)
		}
	}
	return kept.String()
}
