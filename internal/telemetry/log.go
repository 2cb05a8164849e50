package telemetry

import (
	"io"
	"log/slog"
	"time"

	"github.com/lmittmann/tint"
	"golang.org/x/term"

	"github.com/kuberewind/kuberewind/internal/render"
)

// NewLogger returns a logger that writes to w as JSON or as text. On a terminal, the text is coloured.
func NewLogger(w io.Writer, format string, level slog.Level) *slog.Logger {
	if format == "json" {
		return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level, ReplaceAttr: short}))
	}
	if IsTerminal(w) {
		return slog.New(tint.NewTextHandler(w, &tint.Options{Level: level, TimeFormat: time.TimeOnly, ReplaceAttr: short}))
	}
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level, ReplaceAttr: short}))
}

// short shortens long values, such as a resource version of 200,000 digits from a server.
func short(_ []string, a slog.Attr) slog.Attr {
	text := ""
	switch value := a.Value.Any().(type) {
	case string:
		text = value
	case error:
		text = value.Error()
	}
	if cut := render.Short(text); cut != text {
		return slog.String(a.Key, cut)
	}
	return a
}

// IsTerminal reports whether w has the file descriptor of a terminal.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(interface{ Fd() uintptr })
	return ok && term.IsTerminal(int(f.Fd()))
}
