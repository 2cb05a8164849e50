package replay

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kuberewind/kuberewind/internal/terminal"
)

// onScreen returns the output of a command on a terminal with this many columns.
func (b *book) onScreen(t *testing.T, columns uint16, args ...string) string {
	t.Helper()
	t.Setenv("NO_COLOR", "1")
	t.Setenv("KUBECONFIG", t.TempDir()+"/none")
	keyboard, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	require.NoError(t, err)
	defer func() { _ = keyboard.Close() }()
	require.NoError(t, unix.IoctlSetPointerInt(int(keyboard.Fd()), unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetInt(int(keyboard.Fd()), unix.TIOCGPTN)
	require.NoError(t, err)
	screen, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	require.NoError(t, unix.IoctlSetWinsize(int(screen.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 1000, Col: columns}))
	shown := make(chan string, 1)
	go func() {
		text, _ := io.ReadAll(keyboard) // it fails when the other end closes
		shown <- strings.ReplaceAll(string(text), "\r\n", "\n")
	}()
	var errors bytes.Buffer
	args = append(args, "--utc", "--no-pager", "--database", b.DB.URL())
	code := Execute(t.Context(), "replay", args, genericiooptions.IOStreams{In: strings.NewReader(""), Out: screen, ErrOut: &errors})
	require.NoError(t, screen.Close())
	text := <-shown
	require.Zero(t, code, errors.String())
	return text
}

// screenLine matches the first line of a delta on a screen, or of a group of siblings with their number.
var screenLine = regexp.MustCompile(`(?m)^[ ~?]\d\d:\d\d:\d\d\.\d{3}(?:$|  (?:(\d+) [a-z]+ of )?)`)

// deltasOn counts the deltas that a screen shows, and the folded deltas that it counts.
func deltasOn(t *testing.T, text string) (shown, folded int) {
	t.Helper()
	for _, line := range screenLine.FindAllStringSubmatch(text, -1) {
		n := 1
		if line[1] != "" {
			n, _ = strconv.Atoi(line[1])
		}
		shown += n
	}
	if m := regexp.MustCompile(`(?m)^-- (\d+) more: `).FindStringSubmatch(text); m != nil {
		folded, _ = strconv.Atoi(m[1])
	}
	return shown, folded
}

// An engineer looks for these lines: who scaled, the new image, why its Pods are stuck, and when it was rolled back.
var soughtOnScreen = []string{
	`(?m)^ 13:17:37\.180 +deploy/web +kubectl/scale +spec\.replicas 3 → 5$`,
	`deploy/web +kubectl-set +spec\.template\.spec\.containers\[web\]\.image \S+:v1 → \S+:v2-broken`,
	`3 pods of rs/web-5798c68678 +kwok/status +waiting: ImagePullBackOff`,
	`13:18:37\.197 +deploy/web +kubectl .* spec\.template\.spec\.containers\[web\]\.image \S+:v2-broken → \S+:v1`,
}

func TestABadRolloutFitsOnScreensOfAnyWidth(t *testing.T) {
	b := newScene(t)
	window := []string{"log", "-n", "shop", "--around", "2026-11-25T13:18:07Z", "--within", "45s"}
	all := entriesOf(t, b.replayed(t, append(window, "-o", "json", "-v")...).out)
	for _, columns := range []uint16{80, 120, 160} {
		t.Run(strconv.Itoa(int(columns)), func(t *testing.T) {
			text := b.onScreen(t, columns, window...)
			require.LessOrEqual(t, strings.Count(text, "\n"), 40, text)
			for line := range strings.Lines(text) {
				require.LessOrEqual(t, terminal.Columns(strings.TrimSuffix(line, "\n")), int(columns), line)
			}
			flowing := strings.Join(strings.Fields(text), " ")
			require.Regexp(t, soughtOnScreen[0], text)
			for _, sought := range soughtOnScreen[1:] {
				require.Regexp(t, sought, flowing)
			}
			shown, folded := deltasOn(t, text)
			require.Equal(t, all, shown+folded, text)
		})
	}
}

func TestAScreenShowsOrCountsEveryDelta(t *testing.T) {
	b := newScene(t)
	for _, args := range []string{"-A", "-A --reverse", "-n shop -l app=web", "pods -A --type Deleted,Updated", "deployment/web -n shop --owned", "deployment/web -n shop", "-A -v"} {
		t.Run(args, func(t *testing.T) {
			filters := append([]string{"log"}, strings.Fields(args)...)
			if !strings.Contains(args, "/") {
				filters = append(filters, "--since", "seq:1")
			}
			json := filters
			if !strings.Contains(args, "-v") {
				json = append(json, "-v")
			}
			all := entriesOf(t, b.replayed(t, append(json, "-o", "json")...).out)
			shown, folded := deltasOn(t, b.onScreen(t, 80, filters...))
			require.Positive(t, shown)
			require.Equal(t, all, shown+folded)
			if strings.Contains(args, "-v") {
				require.Zero(t, folded)
			}
		})
	}
}
