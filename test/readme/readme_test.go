package readme

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kuberewind/kuberewind/internal/pgtest"
	"github.com/kuberewind/kuberewind/internal/replay"
	"github.com/kuberewind/kuberewind/internal/scenetest"
)

var update = flag.Bool("update", false, "write what the commands print into the pages")

func TestMain(m *testing.M) {
	time.Local = time.UTC // the times of the pages are those of the recording
	pgtest.Main(m)
}

// pages have transcripts.
var pages = []string{"README.md", "docs/replay.md"}

// transcript is a block of a page that shows commands and what they print.
var transcript = regexp.MustCompile("(?s)```console\n(.*?)```\n")

// words are those of a command; some stand in single quotes.
var words = regexp.MustCompile(`'[^']*'|\S+`)

func TestThePagesShowWhatTheCommandsPrint(t *testing.T) {
	database := pgtest.New(t, scenetest.Record)
	for key, value := range map[string]string{"NO_COLOR": "1", "KUBECONFIG": t.TempDir() + "/none", "REPLAY_DATABASE": database.URL(), "REPLAY_QUIET": "true"} {
		t.Setenv(key, value)
	}
	for _, page := range pages {
		t.Run(page, func(t *testing.T) { requireTrue(t, "../../"+page) })
	}
}

// requireTrue compares the transcripts of a page with the output of its commands, or updates them.
func requireTrue(t *testing.T, page string) {
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	require.True(t, transcript.Match(text), "there is no transcript")
	made := transcript.ReplaceAllFunc(text, func(block []byte) []byte {
		var out bytes.Buffer
		fmt.Fprintln(&out, "```console")
		for line := range strings.Lines(string(transcript.FindSubmatch(block)[1])) {
			if command, ok := strings.CutPrefix(line, "$ replay "); ok {
				out.WriteString(line + printed(t, strings.TrimSpace(command)))
			}
		}
		fmt.Fprintln(&out, "```")
		return out.Bytes()
	})
	if *update {
		require.NoError(t, os.WriteFile(page, made, 0o644))
		return
	}
	require.Equal(t, string(text), string(made), "go test ./test/readme -update writes it anew")
}

// printed is what a command prints on a terminal of 100 columns, and its error behind that.
func printed(t *testing.T, command string) string {
	t.Helper()
	var args []string
	for _, word := range words.FindAllString(command, -1) {
		args = append(args, strings.Trim(word, "'"))
	}
	keyboard, screen := openTerminal(t)
	shown := make(chan string, 1)
	go func() {
		text, _ := io.ReadAll(keyboard) // it ends with an error when the other end is closed
		shown <- strings.ReplaceAll(string(text), "\r\n", "\n")
	}()
	var errors bytes.Buffer
	code := replay.Execute(t.Context(), "replay", args, genericiooptions.IOStreams{In: strings.NewReader(""), Out: screen, ErrOut: &errors})
	require.LessOrEqual(t, code, 1, "%s: %s", command, errors.String())
	require.NoError(t, screen.Close())
	return <-shown + errors.String()
}

func openTerminal(t *testing.T) (keyboard, screen *os.File) {
	t.Helper()
	keyboard, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = keyboard.Close() })
	require.NoError(t, unix.IoctlSetPointerInt(int(keyboard.Fd()), unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetInt(int(keyboard.Fd()), unix.TIOCGPTN)
	require.NoError(t, err)
	screen, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	require.NoError(t, unix.IoctlSetWinsize(int(screen.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 1000, Col: 100}))
	return keyboard, screen
}
