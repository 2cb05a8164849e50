package apiserver

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/websocket"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kuberewind/kuberewind/apiserver/internal/wire"
)

// An eventStream sends the events of one watch to its client. Its only error is errGone.
type eventStream interface {
	// send may buffer events until flush, because a system call for each event would cost more than the event.
	send(kind watch.EventType, object []byte) error
	flush() error
	// patience bounds the time of each following write; 0 means no bound.
	patience(within time.Duration)
}

// An event is an object between eventHead and eventTail.
const (
	eventHead = `{"type":%q,"object":`
	eventTail = "}\n"
)

func eventJSON(kind watch.EventType, object []byte) []byte {
	out := make([]byte, 0, len(object)+32)
	out = fmt.Appendf(out, eventHead, string(kind))
	return append(append(out, object...), eventTail...)
}

func statusJSON(s *metav1.Status) ([]byte, error) { return json.Marshal(s) }

// serveEvents runs a watch over HTTP, or over a WebSocket if the client requests one. It returns when run returns.
func serveEvents(w http.ResponseWriter, r *http.Request, run func(context.Context, eventStream)) error {
	if isWebSocket(r) {
		websocket.Server{
			// The listener checks the Origin, as for every other request.
			Handshake: func(*websocket.Config, *http.Request) error { return nil },
			Handler:   func(conn *websocket.Conn) { runSocket(r.Context(), conn, run) },
		}.ServeHTTP(w, r)
		return nil
	}
	flusher, ok := w.(http.Flusher)
	if !ok {
		return fmt.Errorf("a watch needs a response writer that can flush, not a %T", w)
	}
	w.Header().Set("Content-Type", wire.JSON)
	w.Header().Set("Cache-Control", "no-cache, private")
	w.WriteHeader(http.StatusOK)
	flusher.Flush()
	out := &patientWriter{ResponseWriter: w, deadline: http.NewResponseController(w).SetWriteDeadline}
	stream := &httpStream{w: bufio.NewWriterSize(out, eventBytes), out: out, flusher: flusher}
	run(r.Context(), stream)
	_ = stream.flush() // The client may be gone.
	return nil
}

// eventBytes is the size of the send buffer.
const eventBytes = 64 << 10

func isWebSocket(r *http.Request) bool {
	return headerHas(r.Header, "Connection", "upgrade") && headerHas(r.Header, "Upgrade", "websocket")
}

// A patientWriter bounds the time of each write.
type patientWriter struct {
	http.ResponseWriter
	deadline func(time.Time) error
	within   time.Duration // 0 means no bound
}

// pieceBytes is how much a client must accept within that time.
const pieceBytes = 16 << 10

func (p *patientWriter) Write(text []byte) (n int, err error) {
	for piece := range slices.Chunk(text, pieceBytes) {
		var written int
		p.timed(func() { written, err = p.ResponseWriter.Write(piece) })
		if n += written; err != nil {
			return n, err
		}
	}
	return n, nil
}

func (p *patientWriter) flush(flusher http.Flusher) { p.timed(flusher.Flush) }

// timed runs a write with a deadline. Over HTTP/2, a deadline would also end an idle stream, so timed clears it after each
// write. A connection without deadlines ignores it.
func (p *patientWriter) timed(write func()) {
	if p.within > 0 {
		_ = p.deadline(time.Now().Add(p.within))
		defer func() { _ = p.deadline(time.Time{}) }()
	}
	write()
}

type httpStream struct {
	w       *bufio.Writer
	out     *patientWriter
	flusher http.Flusher
}

func (s *httpStream) send(kind watch.EventType, object []byte) error {
	_, _ = fmt.Fprintf(s.w, eventHead, string(kind)) // A bufio.Writer returns its first error again on later writes, so checking the last write is enough.
	_, _ = s.w.Write(object)
	if _, err := s.w.WriteString(eventTail); err != nil {
		return errGone
	}
	return nil
}

func (s *httpStream) flush() error {
	if err := s.w.Flush(); err != nil {
		return errGone
	}
	s.out.flush(s.flusher)
	return nil
}

func (s *httpStream) patience(within time.Duration) { s.out.within = within }

type socketStream struct {
	conn   *websocket.Conn
	within time.Duration
}

func (s *socketStream) send(kind watch.EventType, object []byte) error {
	deadline := time.Time{}
	if s.within > 0 {
		deadline = time.Now().Add(s.within)
	}
	_ = s.conn.SetWriteDeadline(deadline)                                                   // If the connection is closed, Send fails, too.
	if err := websocket.Message.Send(s.conn, string(eventJSON(kind, object))); err != nil { // a string is a text frame
		return errGone
	}
	return nil
}

// flush does nothing: each event is a frame of its own.
func (s *socketStream) flush() error { return nil }

func (s *socketStream) patience(within time.Duration) { s.within = within }

// runSocket reads from the client while the watch runs, to notice when the client closes the connection.
func runSocket(ctx context.Context, conn *websocket.Conn, run func(context.Context, eventStream)) {
	ctx, cancel := context.WithCancel(ctx)
	read := make(chan struct{})
	go func() {
		defer close(read)
		defer cancel()
		conn.MaxPayloadBytes = 4096 // a watch client sends no data
		for text := ""; websocket.Message.Receive(conn, &text) == nil; {
		}
	}()
	run(ctx, &socketStream{conn: conn})
	cancel()
	_ = conn.Close()
	<-read
}

// headerHas reports whether a header lists a token.
func headerHas(h http.Header, name, token string) bool {
	for _, line := range h.Values(name) {
		for part := range strings.SplitSeq(line, ",") {
			if strings.EqualFold(strings.TrimSpace(part), token) {
				return true
			}
		}
	}
	return false
}
