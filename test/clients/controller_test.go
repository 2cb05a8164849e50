package clients_test

import (
	"bytes"
	"context"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/internal/recordertest"
)

// program finds one that make test-clients builds.
func program(t *testing.T, name string) string {
	t.Helper()
	if *programs == "" {
		t.Skipf("%s is of a module of its own: make test-clients builds it", name)
	}
	return filepath.Join(*programs, name)
}

// A log is written by a program, and read meanwhile.
type log struct {
	mu   sync.Mutex // protects what follows
	text bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// control runs the example through replay exec until the test ends. The place is what the flags of exec say.
func (p *past) control(t *testing.T, place []string, args ...string) *log {
	t.Helper()
	said := &log{}
	cmd := p.replay(context.WithoutCancel(t.Context()), "exec", append(append(place, "--", program(t, "controller")), args...)...)
	cmd.Stdout, cmd.Stderr = said, said
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
		require.NoError(t, cmd.Wait(), said.String())
	})
	return said
}

// few are the Deployments of an instant that the controller scales up, as intentions.
func (p *past) few(t *testing.T, at string) (names []string) {
	t.Helper()
	got := p.run(t, p.kubeconfig(t, at), "get", "deploy", "-A", "-o", `jsonpath={range .items[*]}{.metadata.namespace} {.metadata.name} {.spec.replicas}{"\n"}{end}`)
	require.Zero(t, got.code, got.stderr)
	for line := range strings.Lines(got.stdout) {
		words := strings.Fields(line)
		if replicas, err := strconv.Atoi(words[2]); err == nil && replicas > 0 && replicas < 3 {
			names = append(names, "patch deployments.apps "+words[0]+" "+words[1])
		}
	}
	return names
}

// intended are the different intentions in the file.
func (p *past) intended(t *testing.T) (intended []string) {
	t.Helper()
	noted := p.noted(t, 0)
	for i := range noted {
		intended = append(intended, about(&noted[i]))
	}
	slices.Sort(intended)
	return slices.Compact(intended)
}

func TestAManagerOfControllerRuntimeSyncsAndItsIntentionsAreThoseOfThen(t *testing.T) {
	for _, at := range []string{"now", "seq:400"} {
		t.Run(at, func(t *testing.T) {
			p := serve(t)
			want := p.few(t, at)
			require.NotEmpty(t, want)
			said := p.control(t, []string{"--at", at})
			recordertest.Eventually(t.Context(), t, "each intention is noted", func() bool { return len(p.intended(t)) >= len(want) })
			require.Contains(t, said.String(), `msg="Starting workers"`, "its cache has synced")
			require.Equal(t, want, p.intended(t))
			require.Contains(t, p.noted(t, 0)[0].UserAgent, "controller/")
		})
	}
}

func TestAManagerThatElectsALeaderDoesNothing(t *testing.T) {
	p := serve(t)
	said := p.control(t, []string{"--at", "now"}, "--leader-elect")
	recordertest.Eventually(t.Context(), t, "it tries again to become the leader", func() bool { return len(p.noted(t, 0)) > 1 })
	require.Equal(t, []string{"create leases.coordination.k8s.io default at-least-three"}, p.intended(t))
	require.NotContains(t, said.String(), `msg="Starting workers"`)
	require.Contains(t, said.String(), "the past is read-only")
}

// TestAManagerFollowsASession has the night pass: what the controller would have done comes as Deployments come and change.
func TestAManagerFollowsASession(t *testing.T) {
	p := serve(t)
	session := func(args ...string) {
		said, err := p.replay(t.Context(), "session", append([]string{"night"}, args...)...).CombinedOutput()
		require.NoError(t, err, string(said))
	}
	session("--at", "seq:300")
	said := p.control(t, []string{"--session", "night"})
	recordertest.Eventually(t.Context(), t, "the manager has synced", func() bool { return strings.Contains(said.String(), `msg="Starting workers"`) })
	session("--play", "--speed", "100")
	seen := func() (seqs []int64) {
		for _, i := range p.noted(t, 0) {
			seqs = append(seqs, i.Seq)
		}
		return slices.Compact(seqs)
	}
	recordertest.Eventually(t.Context(), t, "intentions come from different instants", func() bool { return len(seen()) > 3 })
	require.True(t, slices.IsSorted(seen()), "%v", seen())
}
