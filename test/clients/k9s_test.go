package clients_test

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/kuberewind/kuberewind/internal/recordertest"
)

// A terminal is one of tmux, with a server of its own.
type terminal struct{ socket string }

// open runs a program in a terminal until the test ends.
func (p *past) open(t *testing.T, program *exec.Cmd) *terminal {
	t.Helper()
	term := &terminal{socket: filepath.Join(t.TempDir(), "tmux")}
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
	return term.awaitThat(t, "the screen has "+strings.Join(words, ", "), func(screen string) bool {
		for _, word := range words {
			if !strings.Contains(screen, word) {
				return false
			}
		}
		return true
	})
}

// awaitThat returns the first screen that is as it should be.
func (term *terminal) awaitThat(t *testing.T, what string, is func(string) bool) (screen string) {
	t.Helper()
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(screen)
		}
	})
	recordertest.Eventually(t.Context(), t, what, func() bool {
		screen = term.screen(t)
		return is(screen)
	})
	return screen
}

// rows are the rows of the table on k9s' screen: the words of each, by the first one.
func rows(screen string) map[string][]string {
	found := map[string][]string{}
	_, table, _ := strings.Cut(screen, "NAME↑")
	for line := range strings.Lines(table) {
		row, ok := strings.CutPrefix(line, "│")
		if words := strings.Fields(strings.TrimRight(row, "│ \n")); ok && len(words) > 0 {
			found[words[0]] = words
		}
	}
	return found
}

// shows reports whether a screen has the Pods that kubectl gets, each with its status, and no others.
func shows(screen string, pods map[string]pod) bool {
	found := rows(screen)
	for name := range pods {
		if !slices.Contains(found[name], pods[name].status) {
			return false
		}
	}
	return len(found) == len(pods)
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

// Instants of the scene: while an image that is not there is rolled out, some time after that was undone, and the end.
const (
	broken = "2026-11-25T13:18:15Z"
	mended = "2026-11-25T13:20:30Z"
	end    = "now"
)

// followsWithin is what docs/api.md promises of the first seek.
const followsWithin = 5 * time.Second

// TestK9sFollowsASeek moves a session's clock as the page does: by the page's own listener, and with its token.
func TestK9sFollowsASeek(t *testing.T) {
	k9s := program(t, "k9s")
	p := serve(t)
	door := p.door(t)
	then, now := p.pods(t, broken), p.pods(t, end)
	require.NotEqual(t, then, now)
	door.seek(t, "night", end)
	term := p.open(t, p.replay(t.Context(), "exec", "--session", "night", "-n", "shop", "--", k9s, "--logoless", "--splashless", "--command", "pods"))
	term.awaitThat(t, "k9s shows the Pods of the end", func(screen string) bool { return shows(screen, now) })
	for _, seek := range []struct {
		at   string
		pods map[string]pod
	}{{broken, then}, {end, now}} {
		door.seek(t, "night", seek.at)
		sought := time.Now()
		screen := term.awaitThat(t, "k9s shows the Pods of "+seek.at, func(screen string) bool { return shows(screen, seek.pods) })
		took := time.Since(sought)
		t.Logf("k9s followed to %s in %s", seek.at, took.Round(time.Millisecond))
		require.Less(t, took, followsWithin, "the seek to %s", seek.at)
		require.Equal(t, seek.at == broken, strings.Contains(screen, "ImagePullBackOff"))
	}
}

// TestK9sFollowsTheCursorOfThePage has a person look at the page and at k9s side by side.
func TestK9sFollowsTheCursorOfThePage(t *testing.T) {
	k9s := program(t, "k9s")
	p := serve(t)
	hand := p.hand(t, "page")
	term := p.open(t, p.replay(t.Context(), "exec", "--session", "page", "-n", "shop", "--", k9s, "--logoless", "--splashless", "--command", "pods"))
	before := p.pods(t, end)
	term.awaitThat(t, "k9s shows the Pods of the end", func(screen string) bool { return shows(screen, before) })
	for _, at := range []string{broken, mended} {
		seq := hand.drag(t, at)
		pods := p.pods(t, "seq:"+seq)
		require.NotEqual(t, before, pods)
		term.awaitThat(t, "k9s shows the Pods of seq:"+seq, func(screen string) bool { return shows(screen, pods) })
		before = pods
	}
}

func TestK9sShowsTheAgesOfThen(t *testing.T) {
	k9s := program(t, "k9s")
	p := serve(t)
	pods := p.pods(t, broken)
	for name, c := range map[string]struct {
		flags []string
		from  func(pod) time.Duration // is what the age was counted from, at the instant or today
	}{
		"shifted":     {[]string{"--shift-times"}, func(pod pod) time.Duration { return pod.age }},
		"not shifted": {nil, func(pod pod) time.Duration { return time.Since(pod.made) }},
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			args := append(append([]string{"--at", broken, "-n", "shop"}, c.flags...), "--", k9s, "--logoless", "--splashless", "--command", "pods")
			term := p.open(t, p.replay(t.Context(), "exec", args...))
			screen := term.awaitThat(t, "k9s shows the Pods", func(screen string) bool { return shows(screen, pods) })
			for name, row := range rows(screen) {
				since := c.from(pods[name])
				t.Logf("%s: %s", name, row[len(row)-1])
				require.Contains(t, ages(since, since+time.Since(began)), row[len(row)-1], "%v", row)
			}
		})
	}
}

// ages are the texts of all ages between two, such as 3m12s. A client that keeps an object sees it grow older.
func ages(from, to time.Duration) (texts []string) {
	for age := from - time.Second; age <= to+time.Second; age += time.Second {
		texts = append(texts, duration.HumanDuration(age))
	}
	return texts
}
