package replay

import (
	"bufio"
	"bytes"
	"context"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/stretchr/testify/require"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/cert"

	"github.com/kuberewind/kuberewind/internal/config"
)

// folders makes the test's own folders for server files and kubeconfigs.
func folders(t *testing.T) (runtime string) {
	t.Helper()
	runtime = t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", runtime)
	t.Setenv("REPLAY_DATA_DIR", t.TempDir())
	t.Setenv("KUBECONFIG", t.TempDir()+"/none")
	return runtime
}

// asked runs the program on the record. It puts the flags of the record before the arguments.
func (b *book) asked(t *testing.T, args ...string) answer {
	t.Helper()
	var out, errOut bytes.Buffer
	streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut}
	code := Execute(t.Context(), "replay", append([]string{"--database", b.DB.URL()}, args...), streams)
	return answer{code: code, out: out.String(), err: errOut.String()}
}

// serve runs the command serve until the caller calls end, and returns the printed lines. The last line is the page, if
// there is one.
func (b *book) serve(t *testing.T, args ...string) (lines []string, end func() int) {
	t.Helper()
	read, write := io.Pipe()
	return b.serveTo(t, read, write, args...)
}

// serveTo is serve with one end of a pipe or terminal as its output.
func (b *book) serveTo(t *testing.T, read io.Reader, write io.WriteCloser, args ...string) (lines []string, end func() int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	code := make(chan int, 1)
	var errOut bytes.Buffer
	go func() {
		code <- Execute(ctx, "replay", append([]string{"serve", "--database", b.DB.URL()}, args...), genericiooptions.IOStreams{Out: write, ErrOut: &errOut})
		_ = write.Close()
	}()
	scanner, wanted := bufio.NewScanner(read), 4
	if slices.Contains(args, "--page=false") {
		wanted = 3
	}
	for len(lines) < wanted && scanner.Scan() {
		lines = append(lines, scanner.Text())
	}
	if len(lines) < wanted {
		t.Fatalf("serve ended with %d: %s", <-code, errOut.String())
	}
	return lines, func() int {
		cancel()
		return <-code
	}
}

// configMaps lists ConfigMaps with a kubeconfig, like a client.
func configMaps(t *testing.T, kubeconfig []byte) (status int, host string) {
	t.Helper()
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	require.NoError(t, err)
	client, err := rest.HTTPClientFor(config)
	require.NoError(t, err)
	defer client.CloseIdleConnections()
	response, err := client.Get(config.Host + "/api/v1/namespaces/shop/configmaps")
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	return response.StatusCode, config.Host
}

func TestAKubeconfigIsForTheServerAtOneInstant(t *testing.T) {
	b := story(t)
	runtime := folders(t)
	log, file := filepath.Join(t.TempDir(), "audit"), filepath.Join(t.TempDir(), "kubeconfig")
	got := b.asked(t, "kubeconfig")
	require.Equal(t, 1, got.code)
	require.Contains(t, got.err, `no server of this database runs: start "replay serve" in another terminal, or use "replay exec"`)

	lines, end := b.serve(t, "--audit-log", log)
	require.Equal(t, []string{
		fmt.Sprintf("replay --database '%s' exec --at 10m -- kubectl get pods -A", config.MaskURL(b.DB.URL())),
		fmt.Sprintf("replay --database '%s' exec --at 10m -- k9s", config.MaskURL(b.DB.URL())),
		fmt.Sprintf("kill %d", os.Getpid()),
	}, lines[:3])
	require.Regexp(t, `^http://127\.0\.0\.1:\d+/$`, lines[3], "a log has no code")
	got = b.asked(t, "kubeconfig", "--at", "2026-03-10T12:03:00Z", "-n", "shop", "-o", file)
	require.Zero(t, got.code, got.err)
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	loaded, err := clientcmd.Load(text)
	require.NoError(t, err)
	require.Equal(t, "test@2026-03-10T12:03:00Z_seq:5", loaded.CurrentContext)
	require.Equal(t, "shop", loaded.Contexts[loaded.CurrentContext].Namespace)
	status, host := configMaps(t, text)
	require.Equal(t, http.StatusOK, status)
	require.Regexp(t, `^https://127\.0\.0\.1:\d+/clusters/11111111-2222-3333-4444-555555555555/at/seq:5$`, host)
	for at, context := range map[string]string{"seq:4": "test@seq:4", "now": "_seq:", "2026-03-10T12:00:00Z": "test@2026-03-10T12:00:00Z_seq:2"} {
		got = b.asked(t, "kubeconfig", "--at", at)
		require.Zero(t, got.code, got.err)
		require.Contains(t, got.out, "current-context: ", at)
		require.Contains(t, got.out, context, at)
	}
	before, err := os.ReadFile(file)
	require.NoError(t, err)
	got = b.asked(t, "kubeconfig", "-o", file)
	require.Equal(t, 1, got.code)
	require.Contains(t, got.err, "already exists: remove it, or name another file")
	after, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, before, after)

	got = b.asked(t, "kubeconfig", "--at", "seq:4", "--shift-times")
	require.Zero(t, got.code, got.err)
	require.Contains(t, got.out, "current-context: test@seq:4_shifted")
	require.Contains(t, got.out, "/clusters/11111111-2222-3333-4444-555555555555/shifted/at/seq:4\n")
	got = b.asked(t, "exec", "--at", "seq:4", "sh", "-c", `cat "$KUBECONFIG"`)
	require.Zero(t, got.code, got.err)
	require.Contains(t, got.out, strings.TrimSuffix(host, "5")+"4", "the kubeconfig is for the running server")

	require.Zero(t, end())
	left, err := filepath.Glob(runtime + "/*/*")
	require.NoError(t, err)
	require.Empty(t, left)
	audited, err := os.ReadFile(log)
	require.NoError(t, err)
	require.Contains(t, string(audited), `"annotations":{"kuberewind.io/instant":"seq:5"}`)
	require.Contains(t, b.asked(t, "kubeconfig").err, "no server of this database runs")
}

func TestAnInexactInstantGetsANote(t *testing.T) {
	b := story(t)
	folders(t)
	_, end := b.serve(t)
	got := b.asked(t, "kubeconfig", "--at", "2026-03-10T12:17:00Z")
	require.Zero(t, got.code, got.err)
	require.Contains(t, strings.Join(strings.Fields(got.err), " "), "the answer lacks changes during the pause")
	require.Contains(t, b.asked(t, "kubeconfig", "--at", "2026-03-09T12:17:00Z").err, "before the record began")
	own := filepath.Join(t.TempDir(), "own")
	require.NoError(t, os.WriteFile(own, []byte("{"), 0o600))
	t.Setenv("KUBECONFIG", own)
	got = b.asked(t, "kubeconfig")
	require.Zero(t, got.code, got.err)
	require.Contains(t, strings.Join(strings.Fields(got.err), " "), "Note: the new kubeconfig has no namespace, because your own kubeconfig cannot be read")
	require.Zero(t, end())
}

func TestAServerOnAPublicAddressNeedsAuthorization(t *testing.T) {
	b := newBook(t)
	folders(t)
	got := b.asked(t, "serve", "--listen", "0.0.0.0:6443")
	require.Equal(t, 1, got.code)
	require.Contains(t, got.err, "let the live cluster decide who may read (--authorization live-self or live)")
	got = b.asked(t, "serve", "--allowed-hosts", "jump:443")
	require.Contains(t, got.err, `--allowed-hosts "jump:443" is not a host name`)
	t.Setenv("XDG_RUNTIME_DIR", "/proc/none")
	t.Setenv("REPLAY_DATA_DIR", "/proc/none")
	got = b.asked(t, "serve")
	require.Equal(t, 1, got.code)
	require.Contains(t, got.err, "publish the address of the server for other commands")
}

func TestContradictoryFlagsOfASharedServerAreRejected(t *testing.T) {
	b := story(t)
	folders(t)
	const uid = "11111111-2222-3333-4444-555555555555"
	certificate, key := keyPair(t)
	kubeconfig := func(cluster string) string {
		name := filepath.Join(t.TempDir(), "kubeconfig")
		require.NoError(t, os.WriteFile(name, []byte("{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a}}], clusters: [{name: a, cluster: "+cluster+"}]}"), 0o600))
		return name
	}
	live := kubeconfig("{server: 'https://127.0.0.1:1'}")
	with := func(more ...string) []string {
		return append([]string{"--listen", "0.0.0.0:0", "--tls-cert", certificate, "--tls-key", key}, more...)
	}
	for name, c := range map[string]struct {
		args []string
		says string
	}{
		"no mode":                 {with("--live", uid+"="+live), "need --authorization"},
		"an unknown mode":         {with("--authorization", "rbac", "--live", uid+"="+live), `--authorization "rbac": use live-self or live`},
		"no certificate":          {[]string{"--authorization", "live", "--live", uid + "=" + live}, "needs --tls-cert and --tls-key"},
		"no live API":             {with("--authorization", "live-self"), "needs --live UID=KUBECONFIG"},
		"no UID":                  {with("--authorization", "live-self", "--live", live), "use UID=KUBECONFIG"},
		"a cluster twice":         {with("--authorization", "live-self", "--live", uid+"="+live, "--live", uid+"="+live), "names cluster " + uid + " twice"},
		"a cluster of no record":  {with("--authorization", "live-self", "--live", "other="+live), "this server has no cluster with this UID; it serves " + uid + " (test)"},
		"no kubeconfig":           {with("--authorization", "live-self", "--live", uid+"=/none"), "/none: no such file"},
		"a live API over HTTP":    {with("--authorization", "live-self", "--live", uid+"="+kubeconfig("{server: 'http://127.0.0.1:1'}")), "is not https"},
		"a live API of anyone's":  {with("--authorization", "live", "--live", uid+"="+kubeconfig("{server: 'https://127.0.0.1:1', insecure-skip-tls-verify: true}")), "insecure-skip-tls-verify"},
		"a key of another":        {[]string{"--authorization", "live", "--live", uid + "=" + live, "--tls-cert", certificate, "--tls-key", certificate}, "read --tls-cert and --tls-key"},
		"a name for an address":   {append(with("--authorization", "live", "--live", uid+"="+live), "--listen", "example.com:1"), "write an address of this machine"},
		"others without any mode": {[]string{"--listen", "[::]:0"}, "without --authorization"},
	} {
		got := b.asked(t, append([]string{"serve"}, c.args...)...)
		require.Equal(t, 1, got.code, name)
		require.Contains(t, strings.Join(strings.Fields(got.err), " "), c.says, name)
	}
}

// keyPair writes a certificate of example.com and its key.
func keyPair(t *testing.T) (certificate, key string) {
	t.Helper()
	folder := t.TempDir()
	certificate, key = filepath.Join(folder, "tls.crt"), filepath.Join(folder, "tls.key")
	certText, keyText, err := cert.GenerateSelfSignedCertKey("example.com", nil, nil)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(certificate, certText, 0o600))
	require.NoError(t, os.WriteFile(key, keyText, 0o600))
	return certificate, key
}

func TestExecStartsAServerAndMakesAFolder(t *testing.T) {
	b := story(t)
	runtime := folders(t)
	copied := filepath.Join(t.TempDir(), "copy")
	t.Setenv("COPY", copied)
	got := b.asked(t, "exec", "--at", "seq:5", "-n", "shop", "--", "sh", "-c",
		`cp "$KUBECONFIG" "$COPY"; stat -c %a "$KUBECONFIG" "${KUBECONFIG%/*}"; echo "${KUBECACHEDIR%/*}"; mkdir "$KUBECACHEDIR"; exit 3`)
	require.Equal(t, 3, got.code, got.err)
	lines := strings.Fields(got.out)
	require.Equal(t, []string{"600", "700"}, lines[:2])
	require.Equal(t, runtime, filepath.Dir(lines[2]))
	require.NoDirExists(t, lines[2])
	text, err := os.ReadFile(copied)
	require.NoError(t, err)
	require.Contains(t, string(text), "current-context: test@seq:5")
	config, err := clientcmd.RESTConfigFromKubeConfig(text)
	require.NoError(t, err)
	require.True(t, x509.NewCertPool().AppendCertsFromPEM(config.CAData))
	client, err := rest.HTTPClientFor(config)
	require.NoError(t, err)
	_, err = client.Get(config.Host) //nolint:bodyclose // there is no body
	require.ErrorIs(t, err, syscall.ECONNREFUSED, "the server ended with the program")

	require.Equal(t, 127, b.asked(t, "exec", "no-such-program").code)
	require.Contains(t, b.asked(t, "exec").err, "name the program to run, such as -- k9s")
	require.Equal(t, 137, b.asked(t, "exec", "--", "sh", "-c", "kill -9 $$").code)
	plain := filepath.Join(t.TempDir(), "plain")
	require.NoError(t, os.WriteFile(plain, []byte("#!/none\n"), 0o700))
	got = b.asked(t, "exec", plain)
	require.Equal(t, 127, got.code, got.err)

	t.Setenv("SHELL", plain)
	require.NoError(t, os.WriteFile(plain, []byte("#!/bin/sh\ngrep current-context \"$KUBECONFIG\"\nexit 4\n"), 0o700))
	got = b.asked(t, "shell", "--at", "seq:4")
	require.Equal(t, 4, got.code, got.err)
	require.Equal(t, "current-context: test@seq:4\n", got.out)
	require.Contains(t, strings.Join(strings.Fields(got.err), " "), "Note: kubectl in this shell uses context test@seq:4")
	left, err := os.ReadDir(runtime)
	require.NoError(t, err)
	require.Empty(t, left)
}

// ended returns the exit code of a program that must end soon.
func ended(t *testing.T, cmd *exec.Cmd) int {
	t.Helper()
	limit := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
	defer limit.Stop()
	_ = cmd.Wait() // ProcessState says more
	return cmd.ProcessState.ExitCode()
}

func TestASignalReachesTheProgram(t *testing.T) {
	b := story(t)
	runtime := folders(t)
	const script = `trap 'kill $p; exit 7' TERM; trap 'kill $p; exit 8' HUP; sleep 60 & p=$!; echo ready; wait $p`
	for number, code := range map[os.Signal]int{syscall.SIGTERM: 7, syscall.SIGHUP: 8} {
		if signal.Ignored(number) {
			t.Logf("skipping %s: this process ignores it, as under nohup, so no shell can trap it", number)
			continue
		}
		cmd := b.program(t, "exec", "--at", "seq:5", "--", "sh", "-c", script)
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		ready, err := bufio.NewReader(out).ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, "ready\n", ready)
		require.NoError(t, cmd.Process.Signal(number))
		require.Equal(t, code, ended(t, cmd))
		left, err := os.ReadDir(runtime)
		require.NoError(t, err)
		require.Empty(t, left)
	}
}

// TestCtrlCReachesTheProgramOnce stops replay with SIGSTOP, so that a second SIGINT would come after the first. SIGTERM
// follows.
func TestCtrlCReachesTheProgramOnce(t *testing.T) {
	b := story(t)
	folders(t)
	cmd := b.program(t, "exec", "--at", "seq:5", "--", "sh", "-c", `n=0; trap 'n=$((n+1)); echo int' INT; trap 'exit $((10+n))' TERM; echo ready; while :; do read x; done`)
	terminal, err := pty.Start(cmd)
	require.NoError(t, err)
	defer func() { _ = terminal.Close() }()
	lines := bufio.NewReader(terminal)
	until := func(wanted string) {
		for line := ""; !strings.Contains(line, wanted); {
			line, err = lines.ReadString('\n')
			require.NoError(t, err)
		}
	}
	until("ready")
	require.NoError(t, cmd.Process.Signal(syscall.SIGSTOP))
	_, err = io.WriteString(terminal, "\x03")
	require.NoError(t, err)
	until("int")
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, cmd.Process.Signal(syscall.SIGCONT))
	require.Equal(t, 11, ended(t, cmd))
}
