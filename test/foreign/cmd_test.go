package foreign_test

import (
	"context"
	_ "embed"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

//go:embed testdata/cmd.sh
var cmdScript string

// patience is many times what a function takes on a busy machine.
const patience = 10 * time.Minute

// node is the one that test-cmd.sh makes. A server keeps no managers of an object that has nothing else.
const node = `{"kind":"Node","apiVersion":"v1","metadata":{"name":"127.0.0.1","annotations":{"save-managers":"true"}},"status":{"capacity":{"memory":"1Gi"}}}`

// function is how the suite names one that it runs.
var function = regexp.MustCompile(`(?m)^\s+record_command (run_\w+)$`)

// A cmdSuite is Kubernetes' test/cmd: functions of bash that call kubectl. They are read where the module cache has them.
type cmdSuite struct {
	root      string // of the copy that functions run in
	binaries  string
	functions []string
}

func newCmdSuite(t *testing.T, w *world) *cmdSuite {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/kubernetes").Output()
	require.NoError(t, err)
	s := &cmdSuite{root: t.TempDir(), binaries: t.TempDir()}
	module := strings.TrimSpace(string(out))
	for _, folder := range []string{"hack", "test", "third_party", "cluster"} { // Functions write beside them.
		require.NoError(t, os.Symlink(filepath.Join(module, folder), filepath.Join(s.root, folder)))
	}
	require.NoError(t, os.Symlink(w.plane.Kubectl(), filepath.Join(s.binaries, "kubectl")))
	text, err := os.ReadFile(filepath.Join(module, "test", "cmd", "legacy-script.sh"))
	require.NoError(t, err)
	for _, found := range function.FindAllStringSubmatch(string(text), -1) {
		s.functions = append(s.functions, found[1])
	}
	require.NotEmpty(t, s.functions)
	return s
}

// run runs one function, and gives what it says.
func (s *cmdSuite) run(t *testing.T, w *world, name string) (said string, pass bool) {
	t.Helper()
	address, err := url.Parse(w.server.URL)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	command := exec.CommandContext(ctx, "bash", "-c", cmdScript, "cmd.sh", name)
	command.Dir = s.root
	command.Env = []string{"PATH=" + s.binaries + ":" + os.Getenv("PATH"), "BIN=" + s.binaries, "PORT=" + address.Port(), "TMPDIR=" + t.TempDir(), "HOME=" + t.TempDir()}
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	command.WaitDelay = time.Second // for processes that a function does not end
	out, err := command.CombinedOutput()
	return string(out), err == nil
}

// runCmd runs all functions that apply.
func (w *world) runCmd(t *testing.T, r *report) {
	t.Helper()
	k := w.kubectl(t)
	file := filepath.Join(t.TempDir(), "node.json")
	require.NoError(t, os.WriteFile(file, []byte(node), 0o600))
	k.must("create -f " + file)
	s := newCmdSuite(t, w)
	wanted := regexp.MustCompile(*only)
	for _, name := range s.functions {
		if !wanted.MatchString(name) || r.skips("cmd", name) {
			continue
		}
		began := time.Now()
		said, pass := s.run(t, w, name)
		progress("cmd %s: %s (%s)", name, r.add("cmd", name, pass, said), time.Since(began).Round(100*time.Millisecond))
		if *kept != "" {
			require.NoError(t, os.WriteFile(filepath.Join(*kept, name+".log"), []byte(said), 0o600))
		}
	}
}
