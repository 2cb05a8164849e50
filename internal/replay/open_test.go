package replay

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/creack/pty"
	"github.com/stretchr/testify/require"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kuberewind/kuberewind/internal/replay/open"
)

// noDisplay sets the environment of a terminal over ssh.
func noDisplay(t *testing.T) {
	t.Helper()
	for name, value := range map[string]string{"DISPLAY": "", "WAYLAND_DISPLAY": "", "USER": "ada", "SSH_CONNECTION": "192.0.2.1 50000 192.0.2.7 22"} {
		t.Setenv(name, value)
	}
}

// display makes a script the program that opens files in a browser. The script's argument is the file name.
func display(t *testing.T, script string) {
	t.Helper()
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "xdg-open"), []byte("#!/bin/sh\n"+script+"\n"), 0o700))
	t.Setenv("PATH", folder+":"+os.Getenv("PATH"))
	t.Setenv("DISPLAY", ":7")
}

// newPipe makes the pipe $PIPE of scripts. Its reader waits for the writer.
func newPipe(t *testing.T) (name string) {
	t.Helper()
	name = filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(name, 0o600))
	t.Setenv("PIPE", name)
	return name
}

// follow exchanges the code of a link, like the page, and returns the token.
func follow(t *testing.T, link string) (token string) {
	t.Helper()
	at, err := url.Parse(link)
	require.NoError(t, err)
	focus, err := url.ParseQuery(at.Fragment)
	require.NoError(t, err)
	body, err := json.Marshal(map[string]string{"code": focus.Get("code")})
	require.NoError(t, err)
	response, err := http.Post("http://"+at.Host+"/code/v1/exchange", "application/json", bytes.NewReader(body))
	require.NoError(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, response.StatusCode, "%s", text)
	var access struct{ Token string }
	require.NoError(t, json.Unmarshal(text, &access))
	return access.Token
}

// requireReads requests data from the page with a token.
func requireReads(t *testing.T, page, token string, code int) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, page+"timeline/v1/meta", nil)
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+token)
	response, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, code, response.StatusCode)
}

func TestOpenPrintsALinkWithoutADisplay(t *testing.T) {
	b := story(t)
	folders(t)
	noDisplay(t)
	lines, end := b.serve(t)
	page := lines[3]
	got := b.asked(t, "open")
	require.Zero(t, got.code, got.err)
	printed := strings.Split(got.out, "\n")
	require.Regexp(t, `^`+page+`#code=[\w-]{43}&cluster=11111111-2222-3333-4444-555555555555$`, printed[0])
	require.Regexp(t, `^ssh -L (\d+):127\.0\.0\.1:\d+ ada@192\.0\.2\.7$`, printed[1])
	require.Contains(t, strings.Join(strings.Fields(got.err), " "), "the link opens the page once, within 1m0s")
	requireReads(t, page, follow(t, printed[0]), http.StatusOK)

	got = b.asked(t, "open", "deployment/web", "-n", "shop", "--at", "2026-03-10T12:03:00Z", "-o", "json")
	require.Zero(t, got.code, got.err)
	var answer open.Answer
	require.NoError(t, json.Unmarshal([]byte(got.out), &answer))
	require.Equal(t, page, answer.Page)
	require.Equal(t, "seq:5", answer.At)
	require.Equal(t, "11111111-2222-3333-4444-555555555555", answer.Cluster)
	require.False(t, answer.Expires.IsZero())
	require.True(t, strings.HasSuffix(answer.URL, "&cluster="+answer.Cluster+"&at=seq:5&resource=deployments.apps&namespace=shop&name=web"), answer.URL)
	token := follow(t, answer.URL)
	requireReads(t, page, token, http.StatusOK)
	require.Zero(t, end())
}

func TestServePrintsALinkToATerminal(t *testing.T) {
	b := story(t)
	folders(t)
	keyboard, screen, err := pty.Open()
	require.NoError(t, err)
	defer func() { require.NoError(t, keyboard.Close()) }()
	lines, end := b.serveTo(t, keyboard, screen)
	page, _, _ := strings.Cut(lines[3], "#")
	requireReads(t, page, follow(t, lines[3]), http.StatusOK)
	require.Zero(t, end())
}

func TestOpenReportsErrors(t *testing.T) {
	b := story(t)
	folders(t)
	noDisplay(t)
	for says, args := range map[string][]string{
		`deployments.apps "wbe" was never recorded in namespace shop`: {"deployment/wbe", "-n", "shop"},
		"--output \"yaml\": use one of text, json":                    {"-o", "yaml"},
		"before the record":     {"--at", "2001-01-01T00:00:00Z"},
		"name one object":       {"deployments", "-n", "shop"},
		"accepts at most 2 arg": {"a", "b", "c"},
	} {
		got := b.asked(t, append([]string{"open"}, args...)...)
		require.Equal(t, 1, got.code, got.out)
		require.Contains(t, strings.Join(strings.Fields(got.err), " "), says)
		require.Empty(t, got.out)
	}
	_, end := b.serve(t, "--page=false")
	got := b.asked(t, "open")
	require.Equal(t, 1, got.code)
	require.Contains(t, strings.Join(strings.Fields(got.err), " "), "the running server has no page: end it, and start it without --page=false")
	require.Zero(t, end())
	got = b.asked(t, "serve", "--page=false", "--page-listen", "127.0.0.1:0")
	require.Contains(t, got.err, "--page=false disables the page")
	got = b.asked(t, "serve", "--page-listen", "0.0.0.0:0")
	require.Equal(t, 1, got.code)
	require.Contains(t, strings.Join(strings.Fields(got.err), " "), `--page-listen "0.0.0.0:0": without --authorization, only 127.0.0.1`)
}

// TestOpenRedirectsTheBrowserWithAPrivateFile hangs if open does not wait until the browser used the link.
func TestOpenRedirectsTheBrowserWithAPrivateFile(t *testing.T) {
	b := story(t)
	runtime := folders(t)
	_, end := b.serve(t)
	pipe := newPipe(t)
	display(t, `{ echo "$@"; stat -c %a "$1"; cat "$1"; } > "$PIPE"`)
	opened := make(chan answer, 1)
	go func() { opened <- b.asked(t, "open", "--at", "seq:5") }()
	seen, err := os.ReadFile(pipe)
	require.NoError(t, err)
	args, rest, _ := strings.Cut(string(seen), "\n")
	mode, text, _ := strings.Cut(rest, "\n")
	require.Equal(t, filepath.Join(runtime, "kuberewind"), filepath.Dir(args), "the file is its only argument")
	require.Equal(t, "600", mode)
	require.NotContains(t, text, "<script")
	link := regexp.MustCompile(`content="0; url=([^"]+)"`).FindStringSubmatch(text)
	require.NotNil(t, link, text)
	page, _, _ := strings.Cut(link[1], "#")
	requireReads(t, page, follow(t, html.UnescapeString(link[1])), http.StatusOK)
	got := <-opened
	require.Zero(t, got.code, got.err)
	require.Empty(t, got.out)
	require.Contains(t, got.err, "the page is open in your browser")
	require.NoFileExists(t, args)
	require.Zero(t, end())
}

func TestOpenPrintsALinkIfNoBrowserStarts(t *testing.T) {
	b := story(t)
	folders(t)
	_, end := b.serve(t)
	display(t, "exit 3")
	got := b.asked(t, "open")
	require.Zero(t, got.code, got.err)
	require.Contains(t, strings.Join(strings.Fields(got.err), " "), "xdg-open could not start a browser: exit status 3")
	require.Regexp(t, `^http://127\.0\.0\.1:\d+/#code=`, got.out)
	require.Zero(t, end())
}

func TestOpenStartsAServerThatOtherCommandsFind(t *testing.T) {
	b := story(t)
	runtime := folders(t)
	noDisplay(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	read, write := io.Pipe()
	code := make(chan int, 1)
	go func() {
		streams := genericiooptions.IOStreams{Out: write, ErrOut: io.Discard}
		code <- Execute(ctx, "replay", []string{"open", "--database", b.DB.URL()}, streams)
		_ = write.Close()
	}()
	printed := make([]byte, 4096)
	n, err := read.Read(printed)
	require.NoError(t, err)
	link, _, _ := strings.Cut(string(printed[:n]), "\n")
	page, _, _ := strings.Cut(link, "#")
	requireReads(t, page, follow(t, link), http.StatusOK)
	again := b.asked(t, "open")
	require.Zero(t, again.code, again.err)
	require.Contains(t, again.out, page)
	require.Zero(t, b.asked(t, "session", "night", "--at", "seq:5").code)
	cancel()
	require.Zero(t, <-code)
	left, err := os.ReadDir(filepath.Join(runtime, "kuberewind"))
	require.NoError(t, err)
	require.Empty(t, left)
}

// TestARealBrowserOpensThePageThroughTheFile opens the file in Chromium. Open returns after the page's script has exchanged
// the code, under the page's own policy. Chromium runs before the test: on a busy machine, its first start can take longer
// than the validity of a link.
func TestARealBrowserOpensThePageThroughTheFile(t *testing.T) {
	if os.Getenv("SKIP_WEB") == "1" {
		t.Skip("SKIP_WEB=1 leaves out what needs a browser")
	}
	b := story(t)
	folders(t)
	_, end := b.serve(t)
	devtools := browser(t)
	pipe := newPipe(t)
	display(t, `echo "$1" > "$PIPE"`)
	opened := make(chan answer, 1)
	go func() { opened <- b.asked(t, "open", "deployment/web", "-n", "shop") }()
	file, err := os.ReadFile(pipe)
	require.NoError(t, err)
	tab, err := http.NewRequest(http.MethodPut, devtools+"/json/new?file://"+strings.TrimSpace(string(file)), nil)
	require.NoError(t, err)
	made, err := http.DefaultClient.Do(tab)
	require.NoError(t, err)
	defer func() { _ = made.Body.Close() }()
	require.Equal(t, http.StatusOK, made.StatusCode)
	got := <-opened
	require.Zero(t, got.code, got.err)
	require.Contains(t, got.err, "the page is open in your browser")
	require.Zero(t, end())
}

// browser starts Chromium, stops it after the test, and returns the address of the protocol that opens tabs.
func browser(t *testing.T) (devtools string) {
	t.Helper()
	program, err := exec.LookPath("chromium")
	require.NoError(t, err, "install Chromium (apt-get install chromium), or set SKIP_WEB=1")
	chromium := exec.CommandContext(t.Context(), program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--user-data-dir="+t.TempDir(), "--remote-debugging-port=0")
	chromium.Cancel = func() error { return chromium.Process.Signal(syscall.SIGTERM) }
	temporary, err := os.MkdirTemp("", "") // t.TempDir may be too long for the path of Chromium's socket, which stays in it
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(temporary) })
	chromium.Env = append(os.Environ(), "TMPDIR="+temporary)
	said, err := chromium.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, chromium.Start())
	lines := bufio.NewScanner(said)
	var all strings.Builder
	for lines.Scan() {
		_, _ = fmt.Fprintln(&all, lines.Text())
		if _, address, found := strings.Cut(lines.Text(), "DevTools listening on ws://"); found {
			host, _, _ := strings.Cut(address, "/")
			devtools = "http://" + host
			break
		}
	}
	require.NotEmpty(t, devtools, "Chromium ended before it listened: %s", all.String())
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		_, _ = io.Copy(io.Discard, said)
	}()
	t.Cleanup(func() { // t.Context is already cancelled here; Chromium writes to its folder until it ends
		<-drained
		_ = chromium.Wait()
	})
	return devtools
}
