package wire

import (
	"bufio"
	"net/http"
)

// answerBytes are buffered, so that an early error can still replace the answer.
const answerBytes = 64 << 10

// An Answer is JSON that is written in parts.
type Answer struct {
	buffer  *bufio.Writer
	headers *headers
}

// NewAnswer makes an Answer. It writes nothing yet.
func NewAnswer(w http.ResponseWriter) *Answer {
	h := &headers{w: w}
	return &Answer{buffer: bufio.NewWriterSize(h, answerBytes), headers: h}
}

// Write implements io.Writer.
func (a *Answer) Write(p []byte) (int, error) { return a.buffer.Write(p) }

// Begun reports whether a part of the answer was sent. Then no other answer is possible.
func (a *Answer) Begun() bool { return a.headers.sent }

// Close sends the buffered rest.
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
