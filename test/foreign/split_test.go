package foreign_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// A kubectl works through the proxy.
type kubectl struct {
	*testing.T
	program, kubeconfig, home string
}

func (w *world) kubectl(t *testing.T) *kubectl {
	t.Helper()
	return &kubectl{T: t, program: w.plane.Kubectl(), kubeconfig: w.kubeconfig(t), home: t.TempDir()}
}

// run gives all that a command says, and whether it went well.
func (k *kubectl) run(command string) (said string, ok bool) {
	k.Helper()
	cmd := exec.CommandContext(k.Context(), k.program, append([]string{"--kubeconfig", k.kubeconfig, "--cache-dir", filepath.Join(k.home, "cache")}, strings.Fields(command)...)...)
	cmd.Env = []string{"HOME=" + k.home}
	out, err := cmd.CombinedOutput()
	return string(out), err == nil
}

func (k *kubectl) must(command string) string {
	k.Helper()
	said, ok := k.run(command)
	require.True(k, ok, "kubectl %s: %s", command, said)
	return said
}

const rounds = 5

func TestClientsWriteToTheRealServerAndReadThePast(t *testing.T) {
	w := newWorld(t)
	t.Run("a read sees the write before it", func(t *testing.T) { seesWrites(t, w.kubectl(t)) })
	t.Run("a read after a delete sees that the object ends", func(t *testing.T) { seesDeletes(t, w.kubectl(t)) })
	t.Run("a read waits for the record", func(t *testing.T) { waits(t, w) })
	t.Run("answers come from the past", func(t *testing.T) { answersOfThePast(t, w.kubectl(t)) })
}

func seesWrites(t *testing.T, k *kubectl) {
	t.Helper()
	for i := range rounds {
		name := fmt.Sprintf("settings-%d", i)
		k.must("create configmap " + name + " --from-literal=a=1")
		require.Equal(t, "1", k.must("get configmap "+name+" -o jsonpath={.data.a}"))
		k.must(`patch configmap ` + name + ` --type=merge -p {"data":{"a":"2"}}`)
		require.Equal(t, "2", k.must("get configmap "+name+" -o jsonpath={.data.a}"))
		k.must("delete configmap " + name + " --wait=false")
		said, ok := k.run("get configmap " + name)
		require.False(t, ok, said)
		require.Contains(t, said, "NotFound")
	}
}

func seesDeletes(t *testing.T, k *kubectl) {
	t.Helper()
	k.must("create configmap held --from-literal=a=1")
	k.must(`patch configmap held --type=merge -p {"metadata":{"finalizers":["example.com/held"]}}`)
	require.Empty(t, k.must("get configmap held -o jsonpath={.metadata.deletionTimestamp}"))
	k.must("delete configmap held --wait=false")
	require.NotEmpty(t, k.must("get configmap held -o jsonpath={.metadata.deletionTimestamp}"))
	k.must("delete configmap held --wait=false --dry-run=server")
	k.must(`patch configmap held --type=merge -p {"metadata":{"finalizers":null}}`)
	_, ok := k.run("get configmap held")
	require.False(t, ok)
	k.must("create configmap kept --from-literal=a=1")
	k.must("delete configmap kept --dry-run=server")
	k.must("create configmap never --from-literal=a=1 --dry-run=server")
	require.Equal(t, "1", k.must("get configmap kept -o jsonpath={.data.a}"), "both were trials")
	k.must("delete configmaps --all --wait=false")
	require.NotContains(t, k.must("get configmaps -o name"), "kept")
}

// waits stops the recorder: a read that does not wait says that the object is not there.
func waits(t *testing.T, w *world) {
	t.Helper()
	k := w.kubectl(t)
	k.must("get configmaps") // discovery is in the cache from now on
	require.NoError(t, w.recorder.Signal(syscall.SIGSTOP))
	k.must("create configmap late --from-literal=a=1 --validate=false")
	said, ok := k.run("get configmap late --request-timeout=1s")
	require.NoError(t, w.recorder.Signal(syscall.SIGCONT))
	require.False(t, ok, said)
	require.NotContains(t, said, "NotFound")
	require.Equal(t, "1", k.must("get configmap late -o jsonpath={.data.a}"))
}

func answersOfThePast(t *testing.T, k *kubectl) {
	t.Helper()
	said, ok := k.run("get --raw /openapi/v2")
	require.False(t, ok, "the real server has it")
	require.Contains(t, said, "NotFound")
	require.Contains(t, k.must("get --raw /api/v1"), `"name":"pods"`)
	require.NotContains(t, k.must("get --raw /api/v1"), `"create"`)
	require.Equal(t, "yes\n", k.must("auth can-i list pods"))
	said, ok = k.run("auth can-i create pods")
	require.False(t, ok, said)
}
