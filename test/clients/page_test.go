package clients_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A link is what replay open prints.
type link struct{ URL, Page, Cluster string }

// link leads to the page of the server.
func (p *past) link(t *testing.T) (l link) {
	t.Helper()
	text, err := p.replay(t.Context(), "open", "-o", "json").Output()
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &l))
	return l
}

// A door is the page's listener, as the page uses it.
type door struct {
	link
	token string
}

// door exchanges the code of a link for a token.
func (p *past) door(t *testing.T) *door {
	t.Helper()
	d := &door{link: p.link(t)}
	_, fragment, _ := strings.Cut(d.URL, "#")
	focus, err := url.ParseQuery(fragment)
	require.NoError(t, err)
	require.True(t, focus.Has("code"), d.URL)
	var access struct{ Token string }
	d.send(t, http.MethodPost, "code/v1/exchange", map[string]any{"code": focus.Get("code")}, &access)
	d.token = access.Token
	return d
}

// seek sets the clock of a session, and makes the session if there is none. web/src/session.ts sends the same.
func (d *door) seek(t *testing.T, session, at string) {
	t.Helper()
	var state struct{ Playing bool }
	d.send(t, http.MethodPut, "session/v1/"+session+"?"+url.Values{"cluster": {d.Cluster}}.Encode(), map[string]any{"cluster": d.Cluster, "at": at, "playing": false}, &state)
	require.False(t, state.Playing)
}

func (d *door) send(t *testing.T, method, path string, body, answer any) {
	t.Helper()
	text, err := json.Marshal(body)
	require.NoError(t, err)
	r, err := http.NewRequestWithContext(t.Context(), method, d.Page+path, bytes.NewReader(text))
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Origin", strings.TrimSuffix(d.Page, "/"))
	if d.token != "" {
		r.Header.Set("Authorization", "Bearer "+d.token)
	}
	response, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer response.Body.Close()
	require.Less(t, response.StatusCode, 300, "%s %s", method, path)
	require.NoError(t, json.NewDecoder(response.Body).Decode(answer))
}

// A hand is a browser on the page. It drags the cursor.
type hand struct {
	times io.Writer
	lines *bufio.Scanner
	said  *bytes.Buffer
}

// hand opens the page, and makes a session there.
func (p *past) hand(t *testing.T, session string) *hand {
	t.Helper()
	node, chromium := browser(t)
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), node, "../web/drag.mjs", p.link(t).URL, session)
	cmd.Env = append(os.Environ(), "KUBEREWIND_CHROMIUM="+chromium)
	h := &hand{said: &bytes.Buffer{}}
	cmd.Stderr = h.said
	times, err := cmd.StdinPipe()
	require.NoError(t, err)
	lines, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = times.Close() // It is what ends the program, which may have ended.
		require.NoError(t, cmd.Wait(), h.said.String())
	})
	h.times, h.lines = times, bufio.NewScanner(lines)
	require.Equal(t, "made", h.line(t))
	return h
}

// drag moves the cursor to a time, and gives the seq at which it was released.
func (h *hand) drag(t *testing.T, at string) (seq string) {
	t.Helper()
	_, err := io.WriteString(h.times, at+"\n")
	require.NoError(t, err)
	return h.line(t)
}

func (h *hand) line(t *testing.T) string {
	t.Helper()
	require.True(t, h.lines.Scan(), "the browser has ended: %s", h.said)
	return h.lines.Text()
}

// browser finds what make test-browser installs.
func browser(t *testing.T) (node, chromium string) {
	t.Helper()
	if os.Getenv("SKIP_WEB") == "1" {
		t.Skip("SKIP_WEB=1")
	}
	node, err := exec.LookPath("node")
	require.NoError(t, err, "run make test-browser, or set SKIP_WEB=1")
	chromium, err = exec.LookPath("chromium")
	require.NoError(t, err, "run make test-browser, or set SKIP_WEB=1")
	require.DirExists(t, "../web/node_modules/playwright-core", "run make test-browser, or set SKIP_WEB=1")
	return node, chromium
}
