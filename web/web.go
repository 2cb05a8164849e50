package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"
)

//go:embed dist/index.html dist/app.js dist/app.css dist/icon.svg
var dist embed.FS

// names are the served paths, with their files and content types.
var names = map[string]struct{ file, kind string }{
	"/":         {"index.html", "text/html; charset=utf-8"},
	"/app.js":   {"app.js", "text/javascript; charset=utf-8"},
	"/app.css":  {"app.css", "text/css; charset=utf-8"},
	"/icon.svg": {"icon.svg", "image/svg+xml"},
}

// An asset is a file of the bundle, ready to send.
type asset struct {
	kind, etag   string
	plain, small []byte
}

var assets = sync.OnceValue(load)

// Handler serves the page.
func Handler() http.Handler { return http.HandlerFunc(serve) }

func serve(w http.ResponseWriter, r *http.Request) {
	a, ok := assets()[r.URL.Path]
	switch {
	case !ok:
		http.Error(w, "the page has no such file: open / instead", http.StatusNotFound)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "the page can only be read: use GET", http.StatusMethodNotAllowed)
	default:
		a.send(w, r)
	}
}

// send uses the standard library for If-None-Match, HEAD and ranges.
func (a asset) send(w http.ResponseWriter, r *http.Request) {
	h, body, etag := w.Header(), a.plain, a.etag
	h.Set("Content-Type", a.kind)
	h.Set("Cache-Control", "no-cache") // Clients revalidate each time, because a new program has a new page.
	h.Add("Vary", "Accept-Encoding")
	if takesGzip(r) {
		h.Set("Content-Encoding", "gzip")
		body, etag = a.small, a.etag+"-gzip"
	}
	h.Set("ETag", `"`+etag+`"`)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
}

func takesGzip(r *http.Request) bool {
	for coding := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		name, quality, _ := strings.Cut(strings.TrimSpace(coding), ";")
		if strings.EqualFold(strings.TrimSpace(name), "gzip") {
			return strings.TrimSpace(quality) != "q=0"
		}
	}
	return false
}

// load compresses the embedded files. It cannot fail: the files are part of the program, and writes to memory succeed.
func load() map[string]asset {
	loaded := map[string]asset{}
	for at, name := range names {
		text, err := dist.ReadFile(path.Join("dist", name.file))
		if err != nil {
			panic(err)
		}
		sum := sha256.Sum256(text)
		loaded[at] = asset{kind: name.kind, etag: hex.EncodeToString(sum[:16]), plain: text, small: compressed(text)}
	}
	return loaded
}

func compressed(text []byte) []byte {
	var small bytes.Buffer
	w, err := gzip.NewWriterLevel(&small, gzip.BestCompression)
	if err != nil {
		panic(err)
	}
	_, _ = io.Copy(w, bytes.NewReader(text))
	_ = w.Close()
	return small.Bytes()
}
