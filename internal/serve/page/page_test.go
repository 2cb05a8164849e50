package page_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/kuberewind/kuberewind/internal/serve"
	"github.com/kuberewind/kuberewind/internal/serve/auditlog"
	"github.com/kuberewind/kuberewind/internal/serve/page"
)

// TestMain ignores the goroutines of net/http that wait half a second for clients whose requests it refused.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*conn).closeWriteAndWait"))
}

// says answers with its name, the user, the method and the path.
func says(name string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user := ""
		if caller, ok := request.UserFrom(r.Context()); ok {
			user = caller.GetName()
		}
		fmt.Fprintf(w, "%s %s %s token %q user %q", name, r.Method, r.URL, r.Header.Get("Authorization"), user)
	})
}

// options returns the options of a page on loopback.
func options() page.Options {
	return page.Options{
		Address: "127.0.0.1:0", Codes: page.NewCodes(), Web: says("web"), Sessions: says("sessions"),
		Timelines: map[string]http.Handler{"": says("timeline")}, Log: slog.New(slog.DiscardHandler),
	}
}

// A tab is a served page, and a browser with that page open.
type tab struct {
	t      *testing.T
	server *serve.Server
	codes  *page.Codes
	client *http.Client
	token  string
}

// open serves until the test ends.
func open(t *testing.T, o page.Options) *tab {
	t.Helper()
	server, err := page.Listen(o)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx) }()
	transport := &http.Transport{}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		cancel()
		require.NoError(t, <-served)
	})
	return &tab{t: t, server: server, codes: o.Codes, client: &http.Client{Transport: transport}}
}

// An answer is an answer of the server.
type answer struct {
	code   int
	text   string
	header http.Header
}

func (a answer) status(t *testing.T) (s metav1.Status) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(a.text), &s), a.text)
	require.Equal(t, metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, s.TypeMeta)
	require.EqualValues(t, a.code, s.Code)
	return s
}

// send sends a request with the tab's token, if it has one, after the test's changes.
func (b *tab) send(method, path, body string, change ...func(*http.Request)) answer {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), method, b.server.Access().URL+path, strings.NewReader(body))
	require.NoError(b.t, err)
	if b.token != "" {
		r.Header.Set("Authorization", "Bearer "+b.token)
	}
	for _, one := range change {
		one(r)
	}
	response, err := b.client.Do(r)
	require.NoError(b.t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(b.t, err)
	require.Empty(b.t, response.Header.Get("Access-Control-Allow-Origin"))
	return answer{response.StatusCode, string(text), response.Header}
}

func (b *tab) get(path string, change ...func(*http.Request)) answer {
	b.t.Helper()
	return b.send(http.MethodGet, path, "", change...)
}

func (b *tab) exchange(code string, change ...func(*http.Request)) answer {
	b.t.Helper()
	body, err := json.Marshal(page.Code{Code: code})
	require.NoError(b.t, err)
	return b.send(http.MethodPost, "/code/v1/exchange", string(body), change...)
}

// signIn makes the tab use a new link.
func (b *tab) signIn() (code string) {
	b.t.Helper()
	code = b.codes.New()
	got := b.exchange(code)
	require.Equal(b.t, http.StatusOK, got.code, got.text)
	var access struct{ Token string }
	require.NoError(b.t, json.Unmarshal([]byte(got.text), &access))
	b.token = access.Token
	return code
}

// dataPaths are paths of data, some of them misspelt.
var dataPaths = []string{
	"/timeline/v1/meta", "/timeline/v1/strip?from=1&to=2", "/timeline/v1/metta", "/timeline/v2/meta", "/timeline", "/timeline/", "/session/v1", "/session/v1/night",
	"/session", "/session/v2/night", "/code/v1/new", "/code/v1/await", "/code", "/timeline%2Fv1%2Fmeta",
}

func TestALinkGivesATokenThatReadsAll(t *testing.T) {
	b := open(t, options())
	require.Regexp(t, `^http://127\.0\.0\.1:\d+$`, b.server.Access().URL)
	require.Equal(t, `web GET / token "" user ""`, b.get("/").text)
	for _, path := range dataPaths {
		got := b.get(path)
		require.Equal(t, http.StatusUnauthorized, got.code, path)
		require.Contains(t, got.status(t).Message, `run "replay open" for a new link`, path)
	}
	b.signIn()
	require.Equal(t, `timeline GET /timeline/v1/meta?cluster=u token "" user "kuberewind:local"`, b.get("/timeline/v1/meta?cluster=u").text)
	require.Equal(t, `sessions PUT /session/v1/night token "" user "kuberewind:local"`, b.send(http.MethodPut, "/session/v1/night", "{}").text)
	require.Equal(t, `web GET /app.js token "" user ""`, b.get("/app.js").text)
	for _, path := range []string{"/session", "/session/v2/night", "/code/v1/new", "/code/v1/await", "/session/../clusters/u/at/seq:1/api"} {
		require.Equal(t, http.StatusNotFound, b.get(path).code, path)
	}
}

func TestASecondUseOfACodeRevokesTheTokenItGave(t *testing.T) {
	b := open(t, options())
	code := b.signIn()
	other := *b
	other.signIn()
	require.Equal(t, http.StatusOK, b.get("/timeline/v1/meta").code)
	for range 2 {
		got := b.exchange(code)
		require.Equal(t, http.StatusUnauthorized, got.code)
		require.Contains(t, got.status(t).Message, `was used before, so the token that it gave is revoked: run "replay open"`)
		require.Equal(t, http.StatusUnauthorized, b.get("/timeline/v1/meta").code)
	}
	require.Equal(t, http.StatusOK, other.get("/timeline/v1/meta").code, "another link has a token of its own")
}

func TestAGuessedCodeGivesNothing(t *testing.T) {
	b := open(t, options())
	for _, guess := range []string{"", "a", strings.Repeat("A", 43), b.codes.New()[:42], "null"} {
		got := b.exchange(guess)
		require.Equal(t, http.StatusUnauthorized, got.code, guess)
		require.Contains(t, got.status(t).Message, "is unknown")
	}
	for body, code := range map[string]int{
		"": 401, "{}": 401, "[]": 400, "{": 400, `{"code":1}`: 400, `{"token":"x"}`: 400, `{"code":"` + strings.Repeat("a", 1<<20) + `"}`: 413,
	} {
		require.Equal(t, code, b.send(http.MethodPost, "/code/v1/exchange", body).code, "%.40s", body)
	}
	require.Equal(t, http.StatusMethodNotAllowed, b.get("/code/v1/exchange?code="+b.codes.New()).code)
}

func TestACodeExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		codes := page.NewCodes()
		inTime, late := codes.New(), codes.New()
		var used bool
		awaited := make(chan error, 1)
		go func() {
			var err error
			used, err = codes.Await(t.Context(), late)
			awaited <- err
		}()
		synctest.Wait()
		wait(page.Lifetime - 1)
		_, err := codes.Exchange(inTime)
		require.NoError(t, err)
		wait(1)
		_, err = codes.Exchange(late)
		require.ErrorContains(t, err, `older than 1m0s: run "replay open"`)
		require.NoError(t, <-awaited)
		require.False(t, used)
	})
}

func TestATokenEndsWithItsServer(t *testing.T) {
	b := open(t, options())
	b.signIn()
	next := open(t, options())
	next.token = b.token
	got := next.get("/timeline/v1/meta")
	require.Equal(t, http.StatusUnauthorized, got.code)
	require.Contains(t, got.status(t).Message, `each start of replay serve makes new tokens: run "replay open" for a new link`)
}

func TestTheOldestOfManyLinksIsForgotten(t *testing.T) {
	codes := page.NewCodes()
	first := codes.New()
	token, err := codes.Exchange(first)
	require.NoError(t, err)
	asking := httptest.NewRequest(http.MethodGet, "/", nil)
	asking.Header.Set("Authorization", "Bearer "+token)
	for range 1023 {
		codes.New()
	}
	_, err = codes.Authenticate(asking)
	require.NoError(t, err)
	codes.New()
	_, err = codes.Authenticate(asking)
	require.ErrorContains(t, err, "belongs to another server")
	_, err = codes.Exchange(first)
	require.ErrorContains(t, err, "is unknown")
}

func TestTheTokenOfTheAPIGivesCodes(t *testing.T) {
	codes := page.NewCodes()
	api := httptest.NewServer(codes.ForLinks("http://127.0.0.1:9/", says("api")))
	t.Cleanup(api.Close)
	ask := func(method, path, body string) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), method, api.URL+path, strings.NewReader(body))
		require.NoError(t, err)
		response, err := api.Client().Do(r)
		require.NoError(t, err)
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		return response.StatusCode, string(text)
	}
	code, text := ask(http.MethodPost, page.NewPath, "")
	require.Equal(t, http.StatusOK, code, text)
	var given page.Code
	require.NoError(t, json.Unmarshal([]byte(text), &given))
	require.Equal(t, "http://127.0.0.1:9/", given.Page)
	awaited := make(chan string, 1)
	go func() {
		_, text := ask(http.MethodPost, page.AwaitPath, `{"code":"`+given.Code+`"}`)
		awaited <- text
	}()
	_, err := codes.Exchange(given.Code)
	require.NoError(t, err)
	require.JSONEq(t, `{"used":true}`, <-awaited)
	_, text = ask(http.MethodPost, page.AwaitPath, `{"code":"x"}`)
	require.JSONEq(t, `{}`, text)
	code, _ = ask(http.MethodGet, page.NewPath, "")
	require.Equal(t, http.StatusMethodNotAllowed, code)
	_, text = ask(http.MethodGet, "/api", "")
	require.Contains(t, text, "api GET /api")
}

func TestEveryAnswerHasTheHeadersOfSecurity(t *testing.T) {
	b := open(t, options())
	ask := func() {
		for _, got := range []answer{
			b.get("/"), b.get("/timeline/v1/meta"), b.get("/session/v1"), b.exchange("x"), b.get("/", func(r *http.Request) { r.Host = "evil.example" }),
			b.send(http.MethodDelete, "/", ""), b.get("/timeline/none"),
		} {
			require.Equal(t, "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
				got.header.Get("Content-Security-Policy"), got.text)
			require.Equal(t, "nosniff", got.header.Get("X-Content-Type-Options"))
			require.Equal(t, "no-referrer", got.header.Get("Referrer-Policy"))
			require.Equal(t, "no-store", got.header.Get("Cache-Control"), got.text)
			require.Empty(t, got.header.Get("Set-Cookie"))
		}
	}
	ask()
	b.signIn()
	ask()
}

func TestEveryReadIsOnTheAuditLog(t *testing.T) {
	name := filepath.Join(t.TempDir(), "audit")
	log, err := auditlog.Open(name)
	require.NoError(t, err)
	o := options()
	o.Audit = log
	b := open(t, o)
	code := b.signIn()
	b.get("/timeline/v1/object?uid=u&at=seq:7")
	b.token = "another"
	b.get("/timeline/v1/object?uid=u&at=seq:8")
	require.NoError(t, log.Close())
	lines := readLines(t, name)
	require.Len(t, lines, 3)
	require.NotContains(t, strings.Join(lines, ""), code)
	require.Contains(t, lines[0], `"requestURI":"/code/v1/exchange","verb":"post"`)
	require.Contains(t, lines[1], `"requestURI":"/timeline/v1/object?uid=u\u0026at=seq:7","verb":"get","user":{"username":"kuberewind:local"`)
	require.Contains(t, lines[1], `"kuberewind.io/instant":"seq:7"`)
	require.Contains(t, lines[1], `"objectRef":{"uid":"u"}`)
	require.Contains(t, lines[2], `"code":401`)
}
