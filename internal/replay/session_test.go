package replay

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kuberewind/kuberewind/apiserver"
)

// session runs the command session, and returns its JSON output.
func (b *book) session(t *testing.T, args ...string) (state apiserver.Session) {
	t.Helper()
	got := b.asked(t, append([]string{"session", "-o", "json"}, args...)...)
	require.Zero(t, got.code, got.err)
	require.NoError(t, json.Unmarshal([]byte(got.out), &state))
	return state
}

func TestASessionCanBeCreatedPlayedAndEnded(t *testing.T) {
	b := story(t)
	folders(t)
	_, end := b.serve(t)
	got := b.asked(t, "session", "--utc")
	require.Zero(t, got.code, got.err)
	require.Empty(t, got.out)
	require.Contains(t, got.err, `there are no sessions; make one with "replay session NAME --at INSTANT"`)

	got = b.asked(t, "session", "night", "--at", "2026-03-10T12:03:00Z", "--utc")
	require.Zero(t, got.code, got.err)
	require.Regexp(t, `^NAME +TIME +SEQ +CLOCK +USE\nnight +2026-03-10T12:03:00\.000Z +5 +paused +ends in 30m\n$`, got.out)
	for line := range strings.Lines(got.out) {
		require.LessOrEqual(t, len(line), 80)
	}
	got = b.asked(t, "session", "-o", "json")
	var list apiserver.SessionList
	require.NoError(t, json.Unmarshal([]byte(got.out), &list), got.err)
	require.Len(t, list.Sessions, 1)
	require.Equal(t, "kuberewind:local", list.Sessions[0].Owner)

	played := b.session(t, "night", "--play", "--speed", "0.5")
	require.True(t, played.Playing)
	require.Equal(t, time.Date(2026, 3, 10, 12, 3, 0, 0, time.UTC), played.Time.Truncate(time.Minute))
	require.Contains(t, b.asked(t, "session", "night").out, "plays 0.5x")
	require.False(t, b.session(t, "night", "--pause").Playing)
	moved := b.session(t, "night", "--at", "seq:4")
	require.EqualValues(t, 4, moved.Seq)
	require.InDelta(t, 0.5, moved.Speed, 0)
	require.Equal(t, moved.Seq, b.session(t, "night").Seq)

	got = b.asked(t, "session", "night", "--at", "2026-03-10T12:17:00Z")
	require.Contains(t, strings.Join(strings.Fields(got.err), " "), "the last delta before a time that was caught up on")

	got = b.asked(t, "session", "night", "--end")
	require.Zero(t, got.code, got.err)
	require.Equal(t, "session night has ended\n", got.out)
	got = b.asked(t, "session", "night")
	require.Equal(t, 1, got.code)
	require.Contains(t, got.err, `"replay session night --at INSTANT" creates it again`)
	require.Zero(t, end())
}

func TestABadRequestForASessionIsAnError(t *testing.T) {
	b := story(t)
	folders(t)
	for _, args := range [][]string{{"session"}, {"session", "night", "--at", "now"}, {"exec", "--session", "night", "--", "true"}, {"shell", "--session", "night"}} {
		got := b.asked(t, args...)
		require.Equal(t, 1, got.code, args)
		require.Contains(t, got.err, `no server of this database runs, and a session needs one: start "replay serve" in another terminal`)
	}
	_, end := b.serve(t)
	for line, says := range map[string]string{
		"session --play":                      "name the session",
		"session night --play --pause":        "--play and --pause exclude each other",
		"session night --end --speed 2":       "--end cannot be used with another change",
		"session night -o yaml":               `--output "yaml": use one of text, json`,
		"session night --at teatime":          "teatime",
		"session night --play":                `say where it begins`,
		"session live --at now":               `cannot be changed; choose another name`,
		"session Night --at now":              "DNS label",
		"session .. --at now":                 "DNS label",
		"session night --at now --speed 5000": "from 0.1 to 1000",
		"session night --at 2001-01-01":       "before the record began",
		"session a b":                         "accepts at most 1 arg",
		"kubeconfig --session night --at now": "use one of them",
		"kubeconfig --live --session night":   "use one of them",
		"exec --live --at now true":           "use one of them",
		"shell --live --at now":               "use one of them",
		"kubeconfig --session night":          `"replay session night --at INSTANT" creates it again`,
		"exec --session night -- true":        `"replay session night --at INSTANT" creates it again`,
		"kubeconfig --session=":               "name a session",
	} {
		got := b.asked(t, strings.Fields(line)...)
		require.Equal(t, 1, got.code, line)
		require.Contains(t, strings.Join(strings.Fields(got.err), " "), says, line)
	}
	require.Zero(t, end())
}

func TestClientsFollowASessionAndTheEndOfTheRecord(t *testing.T) {
	b := story(t)
	folders(t)
	got := b.asked(t, "exec", "--live", "--", "sh", "-c", `grep -e server: -e current "$KUBECONFIG"`)
	require.Zero(t, got.code, got.err)
	require.Regexp(t, `(?s)/session/live\n.*current-context: test@live\n`, got.out, "the server that shell starts has the session")

	_, end := b.serve(t)
	b.session(t, "night", "--at", "seq:5")
	file := filepath.Join(t.TempDir(), "kubeconfig")
	for flag, c := range map[string]struct{ context, path string }{
		"--session=night": {"test@session:night", "/session/night"},
		"--live":          {"test@live", "/session/live"},
		"--session=live":  {"test@live", "/session/live"},
	} {
		require.NoError(t, os.RemoveAll(file))
		got = b.asked(t, "kubeconfig", flag, "-n", "shop", "-o", file)
		require.Zero(t, got.code, got.err)
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		loaded, err := clientcmd.Load(text)
		require.NoError(t, err)
		require.Equal(t, c.context, loaded.CurrentContext)
		require.Equal(t, "shop", loaded.Contexts[c.context].Namespace)
		status, host := configMaps(t, text)
		require.Equal(t, http.StatusOK, status)
		require.Regexp(t, fmt.Sprintf(`^https://127\.0\.0\.1:\d+/clusters/11111111-2222-3333-4444-555555555555%s$`, c.path), host)
		for _, command := range []string{"exec", "shell"} {
			args := []string{command, flag}
			if command == "exec" {
				args = append(args, "--", "sh", "-c", `cat "$KUBECONFIG"`)
			}
			t.Setenv("SHELL", filepath.Join(t.TempDir(), "sh"))
			require.NoError(t, os.WriteFile(os.Getenv("SHELL"), []byte("#!/bin/sh\ncat \"$KUBECONFIG\"\n"), 0o700))
			got = b.asked(t, args...)
			require.Zero(t, got.code, got.err)
			require.Contains(t, got.out, host)
		}
	}
	require.Zero(t, end())
}
