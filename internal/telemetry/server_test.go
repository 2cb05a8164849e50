package telemetry

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// pipes is a listener with connections in memory, which use the clock of synctest.
type pipes struct {
	accepted chan net.Conn
	closed   chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.accepted:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	select {
	case <-p.closed:
	default:
		close(p.closed)
	}
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

func (p *pipes) dial() net.Conn {
	here, there := net.Pipe()
	p.accepted <- there
	return here
}

// serveInBubble runs a server in a bubble of synctest.
func serveInBubble(t *testing.T, do func(*pipes)) {
	synctest.Test(t, func(t *testing.T) {
		listener := &pipes{accepted: make(chan net.Conn), closed: make(chan struct{})}
		s := newServer(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			_, _ = io.WriteString(w, "ok")
		}))
		ctx, cancel := context.WithCancel(t.Context())
		served := make(chan error)
		go func() { served <- s.Serve(ctx) }()
		do(listener)
		cancel()
		s.Close()
		if err := <-served; err != nil {
			require.ErrorIs(t, err, http.ErrServerClosed)
		}
	})
}

func requireAnswer(t *testing.T, conn net.Conn) {
	t.Helper()
	_, err := io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n")
	require.NoError(t, err)
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	body, err := io.ReadAll(response.Body)
	require.NoError(t, errors.Join(err, response.Body.Close()))
	require.Equal(t, "ok", string(body))
}

// requireCut requires that the server closes a connection within a time.
func requireCut(t *testing.T, conn net.Conn, within time.Duration) {
	t.Helper()
	err := conn.SetReadDeadline(time.Now().Add(within))
	if err == nil {
		_, err = io.Copy(io.Discard, conn)
	}
	if !errors.Is(err, io.ErrClosedPipe) {
		require.NoError(t, err, "still open")
	}
}

func TestAConnectionThatIsIdleOrSlowIsCut(t *testing.T) {
	serveInBubble(t, func(l *pipes) {
		idle := l.dial()
		requireAnswer(t, idle)
		requireCut(t, idle, 61*time.Second)

		silent := l.dial()
		requireCut(t, silent, 11*time.Second)

		slow := l.dial()
		_, err := io.WriteString(slow, "GET /healthz HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\n1")
		require.NoError(t, err)
		requireCut(t, slow, 31*time.Second)
	})
}

func TestTheOldestConnectionIsClosedForANewOne(t *testing.T) {
	serveInBubble(t, func(l *pipes) {
		var open []net.Conn
		for range maxConnections + 3 {
			conn := l.dial()
			requireAnswer(t, conn)
			open = append(open, conn)
		}
		for _, conn := range open[:3] {
			requireCut(t, conn, time.Second)
		}
		for _, conn := range open[3:] {
			requireAnswer(t, conn)
			require.NoError(t, conn.Close())
		}
	})
}

func TestALongValueIsCutInTheLog(t *testing.T) {
	for _, format := range []string{"text", "json"} {
		var out strings.Builder
		log := NewLogger(&out, format, slog.LevelInfo)
		log.Info("watch", "resource_version", strings.Repeat("9", 200_000), "error", errors.New(strings.Repeat("x", 100_000)), "short", "as it is")
		require.Less(t, out.Len(), 10_000)
		require.Contains(t, out.String(), "bytes … 999")
		require.Contains(t, out.String(), "as it is")
	}
}
