package discovery

import (
	"io"
	"net/http"
	"strings"
)

// health answers the health checks and each of their parts, or is nil. The record does not say how the server was; this program is well if
// it answers.
func health(path string) http.HandlerFunc {
	name, part, parted := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	if name != "healthz" && name != "livez" && name != "readyz" || parted && part == "" {
		return nil
	}
	return func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Type", "text/plain; charset=utf-8")
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Cache-Control", private)
		text := "ok"
		if r.URL.Query().Has("verbose") && !parted {
			text = "[+]ping ok\n" + name + " check passed\n"
		}
		_, _ = io.WriteString(w, text) // A client that is gone needs no answer.
	}
}
