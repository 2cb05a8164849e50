package replay_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/util/cert"

	"github.com/kuberewind/kuberewind/internal/recordertest"
	"github.com/kuberewind/kuberewind/internal/scene/record"
)

// throughAShared reads the past with the credentials of the live cluster, and without the database.
func throughAShared(t *testing.T, c *cluster) {
	folder := t.TempDir()
	certificate, key := keyPair(t, folder)
	command := serveTo(t, c, "--listen", "127.0.0.1:0", "--tls-cert", certificate, "--tls-key", key, "--authorization", "live-self", "--live", uidOf(t, c)+"="+c.kubeconfig)

	command = command[:strings.Index(command, " --at")]

	away := *c
	away.database = nil
	past := filepath.Join(folder, "past.kubeconfig")
	for _, at := range []string{"now", time.Now().Format(time.RFC3339Nano)} {
		_ = os.Remove(past) // no file is written over
		args := append(strings.Fields(command)[1:], "--certificate-authority", certificate, "--at", at, "-n", "shop", "-o", past)
		written := away.replay(args...)
		require.Zero(t, written.code, written.stderr)
		theirs, ours := c.kubectl("get", "configmaps", "-n", "shop", "-o", "name"), c.kubectl("--kubeconfig", past, "get", "configmaps", "-o", "name")
		require.Equal(t, theirs.stdout, ours.stdout, ours.stderr)
		require.NotEmpty(t, ours.stdout)
		name := c.kubectl("--kubeconfig", past, "config", "current-context").stdout
		require.Regexp(t, `^.+@20\d\d-.+Z_seq:\d+\n$`, name)
	}
	live := away.replay(append(strings.Fields(command)[1:], "--certificate-authority", certificate, "--live")...)
	require.Zero(t, live.code, live.stderr)
	require.Contains(t, live.stdout, "/session/live\n")
	for name, args := range map[string][]string{
		`no context "nowhere" with a user`: {"--context", "nowhere"},
		"certificate signed by unknown":    {"--certificate-authority", writeOther(t)},
		"before the record":                {"--at", "2001-01-01T00:00:00Z"},
	} {
		got := away.replay(append(append(strings.Fields(command)[1:], "--certificate-authority", certificate), args...)...)
		require.Equal(t, 1, got.code, got.stdout)
		require.Contains(t, got.stderr, name)
	}
	got := away.replay("kubeconfig", "--server", "https://127.0.0.1:1/clusters/u")
	require.Contains(t, got.stderr, "add --own-credentials")
	got = away.replay("kubeconfig", "--own-credentials", "--server", "https://127.0.0.1:1")
	require.Contains(t, got.stderr, "needs --server https://HOST:PORT/clusters/UID")
}

// sessionsOfTwo has a server of two clusters. Each has sessions of its own, with the same name.
func sessionsOfTwo(t *testing.T, c *cluster) {
	first := uidOf(t, c)
	require.NoError(t, record.Into(t.Context(), c.database.URL()))
	var second string
	require.NoError(t, c.pool.QueryRow(t.Context(), "SELECT uid FROM kuberewind.record_clusters WHERE uid <> $1", first).Scan(&second))

	certificate, key := keyPair(t, t.TempDir())
	// Both clusters ask the one API server that there is: who the caller is does not matter here, but of which cluster.
	command := serveTo(t, c, "--listen", "127.0.0.1:0", "--tls-cert", certificate, "--tls-key", key, "--authorization", "live-self",
		"--live", first+"="+c.kubeconfig, "--live", second+"="+c.kubeconfig)
	origin, _, ok := strings.Cut(command[strings.Index(command, "https://"):], "/clusters/")
	require.True(t, ok, command)
	away := *c
	away.database = nil
	session := func(uid string, args ...string) output {
		return away.replay(append([]string{"session", "--own-credentials", "--server", origin + "/clusters/" + uid, "--certificate-authority", certificate}, args...)...)
	}
	for i, uid := range []string{first, second} {
		made := session(uid, "night", "--at", fmt.Sprintf("seq:%d", 5+i), "-o", "json")
		require.Zero(t, made.code, made.stderr)
		require.Contains(t, made.stdout, fmt.Sprintf(`"cluster": %q`, uid))
	}
	for i, uid := range []string{first, second} {
		got := session(uid, "night", "-o", "json")
		require.Zero(t, got.code, got.stderr)
		require.Contains(t, got.stdout, fmt.Sprintf(`"seq": %d`, 5+i))
		list := session(uid)
		require.Regexp(t, `^NAME .*\nnight  [^\n]*\n$`, list.stdout, "no session of the other cluster")
	}
	ended := session(second, "night", "--end")
	require.Zero(t, ended.code, ended.stderr)
	require.Equal(t, 1, session(second, "night").code)
	require.Zero(t, session(first, "night").code)
	require.Contains(t, away.replay("session", "night", "--server", origin+"/clusters/"+first).stderr, "add --own-credentials")
}

// keyPair makes the certificate of a server.
func keyPair(t *testing.T, folder string) (certificate, key string) {
	t.Helper()
	certificate, key = filepath.Join(folder, "tls.crt"), filepath.Join(folder, "tls.key")
	certText, keyText, err := cert.GenerateSelfSignedCertKey("127.0.0.1", nil, nil)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(certificate, certText, 0o600))
	require.NoError(t, os.WriteFile(key, keyText, 0o600))
	return certificate, key
}

func writeOther(t *testing.T) string {
	t.Helper()
	text, _, err := cert.GenerateSelfSignedCertKey("127.0.0.1", nil, nil)
	require.NoError(t, err)
	name := filepath.Join(t.TempDir(), "other.crt")
	require.NoError(t, os.WriteFile(name, text, 0o600))
	return name
}

func uidOf(t *testing.T, c *cluster) (uid string) {
	t.Helper()
	require.NoError(t, c.pool.QueryRow(t.Context(), "SELECT uid FROM kuberewind.record_clusters").Scan(&uid))
	return uid
}

// serveTo starts replay serve, and gives the command that it prints for others. It ends with the test.
func serveTo(t *testing.T, c *cluster, args ...string) (command string) {
	t.Helper()
	serving := exec.CommandContext(context.WithoutCancel(t.Context()), recordertest.Program("replay"), append([]string{"serve"}, args...)...)
	serving.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "REPLAY_DATABASE=" + c.database.URL()}
	var said bytes.Buffer
	serving.Stderr = &said
	out, err := serving.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, serving.Start())
	lines := bufio.NewScanner(out)
	require.True(t, lines.Scan(), "%v: %s", lines.Err(), said.String())
	t.Cleanup(func() {
		require.NoError(t, serving.Process.Signal(syscall.SIGTERM))
		require.NoError(t, serving.Wait(), said.String())
	})
	return lines.Text()
}
