package discovery

import (
	"io"
	"net/http"
	"strings"
)

// health returns the handler of a health check or of one of its parts, nil for other paths. The record has no health of the
// server. This program is healthy if it answers.
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
		_, _ = io.WriteString(w, text) // The client may be gone.
	}
}
