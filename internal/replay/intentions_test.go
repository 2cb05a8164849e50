package replay

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kuberewind/kuberewind/apiserver"
)

// create requests a ConfigMap from the running server, and returns the answer.
func (b *book) create(t *testing.T) (status int, body string) {
	t.Helper()
	got := b.asked(t, "kubeconfig", "--at", "seq:5")
	require.Zero(t, got.code, got.err)
	config, err := clientcmd.RESTConfigFromKubeConfig([]byte(got.out))
	require.NoError(t, err)
	client, err := rest.HTTPClientFor(config)
	require.NoError(t, err)
	defer client.CloseIdleConnections()
	response, err := client.Post(config.Host+"/api/v1/namespaces/shop/configmaps", "application/json", strings.NewReader(`{"metadata":{"name":"new"}}`))
	require.NoError(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(text)
}

func TestARefusedWriteIsALineInTheFileOfIntentions(t *testing.T) {
	b := story(t)
	folders(t)
	name := filepath.Join(t.TempDir(), "intentions")
	for range 2 { // servers, one after the other
		_, end := b.serve(t, "--intentions", name)
		status, body := b.create(t)
		require.Equal(t, http.StatusMethodNotAllowed, status)
		require.Contains(t, body, "the past is read-only: this is cluster test as it was at 2026-03-10T12:03:00Z (seq:5); the intention was recorded")
		require.Zero(t, end())
	}
	info, err := os.Stat(name)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	require.Len(t, lines, 2)
	for _, line := range lines {
		var got apiserver.Intention
		require.NoError(t, json.Unmarshal([]byte(line), &got))
		require.Equal(t, "create configmaps shop new kuberewind:local", strings.Join([]string{got.Verb, got.Resource, got.Namespace, got.Name, got.User}, " "))
		require.EqualValues(t, 5, got.Seq)
		require.Len(t, got.SHA256, 64)
	}
}

func TestAServerThatExecStartsWritesTheFileOfIntentions(t *testing.T) {
	b := story(t)
	folders(t)
	name := filepath.Join(t.TempDir(), "intentions")
	write := `server=$(sed -n 's/^ *server: //p' "$KUBECONFIG"); token=$(sed -n 's/^ *token: //p' "$KUBECONFIG")
		curl -sk -H "Authorization: Bearer $token" -H "Content-Type: application/json" -d '{"metadata":{"name":"'$1'"}}' "$server/api/v1/namespaces/shop/configmaps"`
	got := b.asked(t, "exec", "--at", "seq:5", "--intentions", name, "--", "sh", "-c", write, "sh", "by-exec")
	require.Zero(t, got.code, got.err)
	require.Contains(t, got.out, "the intention was recorded")
	shell := filepath.Join(t.TempDir(), "sh")
	require.NoError(t, os.WriteFile(shell, []byte("#!/bin/sh\nset by-shell\n"+write), 0o700))
	t.Setenv("SHELL", shell)
	got = b.asked(t, "shell", "--at", "seq:5", "--intentions", name)
	require.Zero(t, got.code, got.err)
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	require.Len(t, lines, 2)
	require.Contains(t, lines[0], `"name":"by-exec"`)
	require.Contains(t, lines[1], `"name":"by-shell"`)

	got = b.asked(t, "exec", "--intentions", t.TempDir(), "--", "true")
	require.Equal(t, 1, got.code)
	require.Contains(t, got.err, "open the file of intentions")
	got = b.asked(t, "exec", "--session=night", "--intentions", name, "--", "true")
	require.Equal(t, 1, got.code)
	require.Contains(t, strings.Join(strings.Fields(got.err), " "), `a session needs a server that already runs: start "replay serve --intentions FILE"`)
	_, end := b.serve(t)
	for _, flag := range []string{"--live", "--session=night"} {
		got = b.asked(t, "shell", flag, "--intentions", name)
		require.Equal(t, 1, got.code)
		require.Contains(t, strings.Join(strings.Fields(got.err), " "), `a server of this database already runs, and does not write to that file. End it, or start it as "replay serve --intentions FILE"`)
	}
	require.Zero(t, end())
}

// TestAClientGetsAnErrorIfItsIntentionCannotBeWritten writes to a pipe whose reader has closed it.
func TestAClientGetsAnErrorIfItsIntentionCannotBeWritten(t *testing.T) {
	b := story(t)
	folders(t)
	name := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(name, 0o600))
	reader, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	require.NoError(t, err)
	_, end := b.serve(t, "--intentions", name)
	status, _ := b.create(t)
	require.Equal(t, http.StatusMethodNotAllowed, status)
	require.NoError(t, reader.Close())
	for range 2 {
		status, body := b.create(t)
		require.Equal(t, http.StatusServiceUnavailable, status)
		require.Contains(t, body, "the file of intentions "+name+" cannot be written")
	}
	require.NotZero(t, end(), "the remaining lines cannot be written")

	got := b.asked(t, "serve", "--intentions", filepath.Join(name, "none"))
	require.Equal(t, 1, got.code)
	require.Contains(t, got.err, "open the file of intentions")
}
