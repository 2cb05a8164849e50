package clients_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/internal/recordertest"
)

// A terminal is one of tmux, with a server of its own.
type terminal struct{ socket string }

// open runs a program in a terminal until the test ends.
func (p *past) open(t *testing.T, program *exec.Cmd) *terminal {
	t.Helper()
	term := &terminal{socket: filepath.Join(p.home, "tmux")}
	cmd := exec.CommandContext(t.Context(), "tmux", append([]string{"-S", term.socket, "-f", "/dev/null", "new-session", "-d", "-x", "200", "-y", "50"}, program.Args...)...)
	cmd.Env = append(program.Env, "TERM=xterm-256color", "LANG=C.UTF-8")
	said, err := cmd.CombinedOutput()
	require.NoError(t, err, string(said))
	t.Cleanup(func() { _ = exec.Command("tmux", "-S", term.socket, "kill-server").Run() }) // It may have ended with its program.
	return term
}

// screen is what a person sees; "" if the program has ended.
func (term *terminal) screen(t *testing.T) string {
	t.Helper()
	text, err := exec.CommandContext(t.Context(), "tmux", "-S", term.socket, "capture-pane", "-p").Output()
	if err != nil {
		return ""
	}
	return string(text)
}

func (term *terminal) keys(t *testing.T, keys ...string) {
	t.Helper()
	require.NoError(t, exec.CommandContext(t.Context(), "tmux", append([]string{"-S", term.socket, "send-keys"}, keys...)...).Run())
}

// await returns the first screen that has all words.
func (term *terminal) await(t *testing.T, words ...string) (screen string) {
	t.Helper()
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(screen)
		}
	})
	recordertest.Eventually(t.Context(), t, "the screen has "+strings.Join(words, ", "), func() bool {
		screen = term.screen(t)
		for _, word := range words {
			if !strings.Contains(screen, word) {
				return false
			}
		}
		return true
	})
	return screen
}

func TestK9sShowsThePodsOfThen(t *testing.T) {
	k9s := program(t, "k9s")
	p := serve(t)
	pods := func(at string) []string {
		names := strings.Fields(p.run(t, p.kubeconfig(t, at), "get", "pods", "-o", "name").stdout)
		for i := range names {
			names[i] = strings.TrimPrefix(names[i], "pod/")
		}
		return names
	}
	then, now := pods("seq:700"), pods("now")
	require.NotEmpty(t, then)
	require.NotEqual(t, then, now)
	term := p.open(t, p.replay(t.Context(), "exec", "--at", "seq:700", "-n", "shop", "--", k9s, "--logoless", "--splashless", "--command", "pods"))
	screen := term.await(t, then...)
	require.Contains(t, screen, "scene@seq:700")
	for _, name := range now {
		require.Equal(t, strings.Contains(strings.Join(then, " "), name), strings.Contains(screen, name), name)
	}
	require.NotContains(t, screen, "Delete", "nothing can be deleted, and k9s knows")

	term.keys(t, ":deploy", "Enter")
	term.await(t, "checkout", "UP-TO-DATE")
	term.keys(t, ":q", "Enter")
	recordertest.Eventually(t.Context(), t, "k9s ends", func() bool { return term.screen(t) == "" })
	require.Empty(t, p.noted(t, 0), "it wanted to change nothing")
}
