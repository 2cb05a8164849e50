package wire

import (
	"bufio"
	"net/http"
)

// answerBytes are kept back, so that an error that comes early can still be an answer.
const answerBytes = 64 << 10

// An Answer is JSON that is written bit by bit.
type Answer struct {
	buffer  *bufio.Writer
	headers *headers
}

// NewAnswer writes nothing yet.
func NewAnswer(w http.ResponseWriter) *Answer {
	h := &headers{w: w}
	return &Answer{buffer: bufio.NewWriterSize(h, answerBytes), headers: h}
}

// Write implements io.Writer.
func (a *Answer) Write(p []byte) (int, error) { return a.buffer.Write(p) }

// Begun reports whether something was sent: then no other answer can be given.
func (a *Answer) Begun() bool { return a.headers.sent }

// Close sends what was kept back.
func (a *Answer) Close() error { return a.buffer.Flush() }

// headers sends the headers before the first bytes.
type headers struct {
	w    http.ResponseWriter
	sent bool
}

func (h *headers) Write(p []byte) (int, error) {
	if !h.sent {
		h.sent = true
		jsonHeader(h.w)
		h.w.WriteHeader(http.StatusOK)
	}
	return h.w.Write(p)
}
