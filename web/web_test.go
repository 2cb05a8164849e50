package web_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/web"
)

func ask(method, path string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	web.Handler().ServeHTTP(w, r)
	return w
}

func text(t *testing.T, r io.Reader) []byte {
	t.Helper()
	all, err := io.ReadAll(r)
	require.NoError(t, err)
	return all
}

func TestThePageIsServedAsItIsCommitted(t *testing.T) {
	for path, want := range map[string]struct{ file, kind string }{
		"/": {"index.html", "text/html; charset=utf-8"}, "/app.js": {"app.js", "text/javascript; charset=utf-8"},
		"/app.css": {"app.css", "text/css; charset=utf-8"}, "/icon.svg": {"icon.svg", "image/svg+xml"},
	} {
		committed, err := os.ReadFile(filepath.Join("dist", want.file))
		require.NoError(t, err)
		answer := ask(http.MethodGet, path)
		require.Equal(t, http.StatusOK, answer.Code, path)
		require.Equal(t, want.kind, answer.Header().Get("Content-Type"), path)
		require.Empty(t, answer.Header().Get("Content-Encoding"), path)
		require.Equal(t, committed, text(t, answer.Body), path)
	}
}

func TestThePageIsCompressedForClientsThatAcceptGzip(t *testing.T) {
	committed, err := os.ReadFile("dist/app.js")
	require.NoError(t, err)
	answer := ask(http.MethodGet, "/app.js", "Accept-Encoding", "br, gzip;q=0.8")
	require.Equal(t, "gzip", answer.Header().Get("Content-Encoding"))
	require.Equal(t, "Accept-Encoding", answer.Header().Get("Vary"))
	packed := text(t, answer.Body)
	require.Less(t, len(packed), 150<<10, "the budget of the page")
	r, err := gzip.NewReader(bytes.NewReader(packed))
	require.NoError(t, err)
	require.Equal(t, committed, text(t, r))

	refused := ask(http.MethodGet, "/app.js", "Accept-Encoding", "gzip;q=0")
	require.Empty(t, refused.Header().Get("Content-Encoding"))
}

func TestABrowserThatHasThePageGetsNotModified(t *testing.T) {
	plain, packed := ask(http.MethodGet, "/app.css"), ask(http.MethodGet, "/app.css", "Accept-Encoding", "gzip")
	require.NotEqual(t, plain.Header().Get("ETag"), packed.Header().Get("ETag"), "they are other bytes")
	require.Equal(t, "no-cache", plain.Header().Get("Cache-Control"), "a new program has a new page")
	again := ask(http.MethodGet, "/app.css", "Accept-Encoding", "gzip", "If-None-Match", packed.Header().Get("ETag"))
	require.Equal(t, http.StatusNotModified, again.Code)
	require.Empty(t, text(t, again.Body))
}

func TestThePageRefusesMethodsThatWrite(t *testing.T) {
	require.Equal(t, http.StatusMethodNotAllowed, ask(http.MethodPost, "/").Code)
	require.Equal(t, "GET, HEAD", ask(http.MethodDelete, "/app.js").Header().Get("Allow"))
	require.Equal(t, http.StatusOK, ask(http.MethodHead, "/").Code)
	for _, path := range []string{"/index.html", "/dist/app.js", "/../web.go", "/timeline", "/favicon.ico"} {
		require.Equal(t, http.StatusNotFound, ask(http.MethodGet, "http://page"+path).Code, path)
	}
}

// The policy without 'unsafe-inline' forbids inline code. An offline page cannot load from other hosts.
func TestThePageHasNoInlineCodeAndNoForeignSources(t *testing.T) {
	index := string(text(t, ask(http.MethodGet, "/").Body))
	require.NotRegexp(t, `(?i)<style|\sstyle=|\son[a-z]+=|<script(?:[^>]*)>[^<]`, index)
	for _, found := range regexp.MustCompile(`(?:src|href)="([^"]*)"`).FindAllStringSubmatch(index, -1) {
		require.Regexp(t, `^/[a-z.]+$`, found[1])
	}
	script := string(text(t, ask(http.MethodGet, "/app.js").Body))
	require.NotRegexp(t, `\beval\(|new Function\(|document\.write`, script)
	style := string(text(t, ask(http.MethodGet, "/app.css").Body))
	require.NotRegexp(t, `@import|url\(`, style)
}

func TestSourcesSetNoHTML(t *testing.T) {
	require.NoError(t, filepath.WalkDir("src", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		source, err := os.ReadFile(path)
		require.NotRegexp(t, `innerHTML|outerHTML|insertAdjacentHTML|dangerouslySet|setAttribute\("style"`, string(source), path)
		return err
	}))
}

func TestVendoredFilesEqualThoseOfTheRegistry(t *testing.T) {
	list, err := os.ReadFile("vendor/digests.sha256")
	require.NoError(t, err)
	want := map[string]string{}
	for line := range strings.Lines(string(list)) {
		digest, name, ok := strings.Cut(strings.TrimSpace(line), "  ")
		require.True(t, ok)
		want[name] = digest
	}
	found := map[string]string{}
	for _, root := range []string{"preact", "@preact"} {
		require.NoError(t, filepath.WalkDir(filepath.Join("vendor", root), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			file, err := os.ReadFile(path)
			sum := sha256.Sum256(file)
			found[strings.TrimPrefix(filepath.ToSlash(path), "vendor/")] = hex.EncodeToString(sum[:])
			return err
		}))
	}
	require.Equal(t, want, found)
}
