package clients_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kuberewind/kuberewind/apiserver"
	"github.com/kuberewind/kuberewind/internal/controlplane/binaries"
	"github.com/kuberewind/kuberewind/internal/pgtest"
	"github.com/kuberewind/kuberewind/internal/recordertest"
	"github.com/kuberewind/kuberewind/internal/scenetest"
)

// A past is the recording of the scene, served by the program.
type past struct {
	url        string // of the database
	home       string // of all programs
	intentions string // file
}

func serve(t *testing.T) *past {
	t.Helper()
	p := &past{url: pgtest.New(t, scenetest.Record).URL(), home: t.TempDir()}
	p.intentions = filepath.Join(p.home, "intentions")
	cmd := p.replay(context.Background(), "serve", "--intentions", p.intentions)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
		require.NoError(t, cmd.Wait(), said.String())
	})
	lines := bufio.NewScanner(out)
	for range 3 { // which are printed when it can be found
		require.True(t, lines.Scan(), "serve ended: %s", &said)
	}
	return p
}

// environment is that of all programs.
func (p *past) environment(more ...string) []string {
	own := []string{"HOME=" + p.home, "XDG_RUNTIME_DIR=" + p.home, "XDG_CONFIG_HOME=" + p.home, "REPLAY_DATA_DIR=" + p.home, "KUBECONFIG=" + filepath.Join(p.home, "none")}
	return append(append(os.Environ(), own...), more...)
}

// replay is a call of the program on the record.
func (p *past) replay(ctx context.Context, command string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, recordertest.Program("replay"), append([]string{command, "--database", p.url}, args...)...)
	cmd.Env = p.environment()
	return cmd
}

// kubeconfig is a file that leads to an instant.
func (p *past) kubeconfig(t *testing.T, at string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "kubeconfig")
	said, err := p.replay(t.Context(), "kubeconfig", "--at", at, "-n", "shop", "-o", name).CombinedOutput()
	require.NoError(t, err, string(said))
	return name
}

type output struct {
	stdout, stderr string
	code           int
}

// run runs kubectl.
func (p *past) run(t *testing.T, kubeconfig string, args ...string) output {
	t.Helper()
	programs, err := binaries.Find(binaries.Kubectl)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), recordertest.Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(programs, binaries.Kubectl), args...)
	cmd.Env = p.environment("TMPDIR="+p.home, "KUBECONFIG="+kubeconfig, "KUBE_EDITOR=sed -i s/replicas:.5/replicas:\\ 9/")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	var exit *exec.ExitError
	if err := cmd.Run(); !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	return output{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// A pod is what kubectl shows of one in a table: the age is that of the instant.
type pod struct {
	status string
	age    time.Duration
	made   time.Time
}

// pods are those of an instant in the namespace, by name.
func (p *past) pods(t *testing.T, at string) map[string]pod {
	t.Helper()
	kubeconfig, all := p.kubeconfig(t, at), map[string]pod{}
	for line := range strings.Lines(p.run(t, kubeconfig, "get", "pods", "--no-headers").stdout) {
		words := strings.Fields(line) // NAME READY STATUS RESTARTS AGE
		age, err := time.ParseDuration(words[len(words)-1])
		require.NoError(t, err, "the scene lasts ten minutes, and ages below that are exact: %s", line)
		all[words[0]] = pod{status: words[2], age: age}
	}
	for line := range strings.Lines(p.run(t, kubeconfig, "get", "pods", "-o", `jsonpath={range .items[*]}{.metadata.name} {.metadata.creationTimestamp}{"\n"}{end}`).stdout) {
		name, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		made, err := time.Parse(time.RFC3339, text)
		require.NoError(t, err)
		all[name] = pod{status: all[name].status, age: all[name].age, made: made}
	}
	require.NotEmpty(t, all)
	return all
}

// noted are the intentions in the file, from a line on.
func (p *past) noted(t *testing.T, from int) (noted []apiserver.Intention) {
	t.Helper()
	text, err := os.ReadFile(p.intentions)
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		var i apiserver.Intention
		if !strings.HasSuffix(line, "\n") {
			break // It is being written.
		}
		require.NoError(t, json.Unmarshal([]byte(line), &i))
		noted = append(noted, i)
	}
	return noted[from:]
}

// about says in a few words what an intention is.
func about(i *apiserver.Intention) string {
	resource := schema.GroupResource{Group: i.Group, Resource: i.Resource}
	words := []string{i.Verb, strings.TrimSuffix(resource.String()+"/"+i.Subresource, "/"), i.Namespace, i.Name}
	if i.DryRun {
		words = append(words, "dry run")
	}
	if i.SHA256 == "" {
		words = append(words, "no digest")
	}
	return strings.Join(strings.Fields(strings.Join(words, " ")), " ")
}
