package page_test

import (
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/internal/serve/page"
)

func wait(d time.Duration) { <-time.After(d) } // inside a synctest bubble, which has its own clock

func readLines(t *testing.T, name string) []string {
	t.Helper()
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

// deniedRows returns the rows of the documentation's table: each denied request, and its code.
func deniedRows(t *testing.T) map[string]int {
	t.Helper()
	text, err := os.ReadFile("../../../docs/timeline.md")
	require.NoError(t, err)
	_, table, ok := strings.Cut(string(text), "### Denied\n")
	require.True(t, ok)
	table, _, _ = strings.Cut(table, "\n#")
	rows := map[string]int{}
	for _, row := range regexp.MustCompile(`(?m)^\| (.+?) \| (\d{3})\b.*\|$`).FindAllStringSubmatch(table, -1) {
		rows[row[1]], err = strconv.Atoi(row[2])
		require.NoError(t, err)
	}
	return rows
}

// TestEachRequestOfTheTableIsDenied compares the table of the documentation with the server.
func TestEachRequestOfTheTableIsDenied(t *testing.T) {
	o := options()
	o.AllowedHosts = []string{"jump.example.com"}
	b := open(t, o)
	b.signIn()
	used := b.codes.New()
	require.Equal(t, http.StatusOK, b.exchange(used).code)
	header := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	host := func(name string) func(*http.Request) { return func(r *http.Request) { r.Host = name } }
	data := func(change ...func(*http.Request)) func() int {
		return func() int { return b.get("/timeline/v1/meta", change...).code }
	}
	cases := map[string][]func() int{
		"no token, or one of an earlier server": {
			data(header("Authorization", "")), data(header("Authorization", "Bearer "+strings.Repeat("A", 43))),
			data(header("Authorization", "Basic "+b.token)), data(header("Authorization", ""), header("Cookie", "token="+b.token)),
			func() int { return b.get("/timeline/v1/meta?token="+b.token, header("Authorization", "")).code },
		},
		"no token, but the name of a user as proxies send it": {
			data(header("Authorization", ""), header("X-Remote-User", "root")), data(header("Authorization", ""), header("X-Forwarded-User", "root")),
		},
		"a header `Impersonate-User`": {data(header("Impersonate-User", "jane")), data(header("Impersonate-Extra-Scopes", "jane"))},
		"a code that is unknown, older than 60 s, or used before": {
			func() int { return b.exchange("guess").code }, func() int { return b.exchange(used).code },
		},
		"another name of the host than `localhost`, `127.0.0.1`, `[::1]` or one of `--allowed-hosts`": {
			data(host("evil.example")), data(host("localhost.evil.example:80")), func() int { return b.get("/", host("evil.example")).code },
			func() int { return b.exchange(b.codes.New(), host("evil.example")).code },
		},
		"an `Origin` that is not the page's own": {
			data(header("Origin", "http://evil.example")), data(header("Origin", "null")), data(header("Origin", "http://127.0.0.1:1")),
			data(header("Origin", strings.Replace(b.server.Access().URL, "http", "https", 1))),
			func() int { return b.exchange(b.codes.New(), header("Origin", "http://evil.example")).code },
		},
		"another method than GET for data": {
			func() int { return b.send(http.MethodPost, "/timeline/v1/meta", "").code },
			func() int { return b.send(http.MethodDelete, "/timeline/v1/meta", "").code },
			func() int { return b.send(http.MethodPut, "/app.js", "").code },
		},
	}
	rows := deniedRows(t)
	require.ElementsMatch(t, slices.Collect(maps.Keys(cases)), slices.Collect(maps.Keys(rows)))
	for row, asks := range cases {
		for i, ask := range asks {
			require.Equal(t, rows[row], ask(), "%s, %d", row, i)
		}
	}
	for _, change := range []func(*http.Request){
		host("localhost:1"), host("LOCALHOST"), host("[::1]:9"), host("127.0.0.1"), host("jump.example.com:80"),
		header("Origin", b.server.Access().URL), func(r *http.Request) { r.Host = "localhost:8080"; r.Header.Set("Origin", "http://localhost:8080") },
	} {
		require.Equal(t, http.StatusOK, data(change)())
	}
}

func TestPlainHTTPStaysOnThisMachine(t *testing.T) {
	for _, address := range []string{"0.0.0.0:0", ":0", "[::]:0", "192.0.2.1:0", "example.com:80"} {
		o := options()
		o.Address = address
		_, err := page.Listen(o)
		require.ErrorContains(t, err, "--page-listen \""+address+"\": without --authorization, only 127.0.0.1", address)
	}
	o := options()
	o.Address = "127.0.0.1"
	_, err := page.Listen(o)
	require.ErrorContains(t, err, "write HOST:PORT")
	b := open(t, options())
	o.Address = strings.TrimPrefix(b.server.Access().URL, "http://")
	_, err = page.Listen(o)
	require.ErrorContains(t, err, "choose another address with --page-listen")
}
