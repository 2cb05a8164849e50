package postgres

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net"
	"net/url"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
)

// A cut is what a proxy does to a connection at a COMMIT.
type cut int

const (
	noCut      cut = iota
	cutBefore      // the server never sees it
	cutAfter       // the client never sees the answer
	cutAndHold     // the client is cut; the transaction stays open on the server's side until it is released
)

// A proxy stands between a sink and the server.
type proxy struct {
	t        testing.TB
	listener net.Listener
	network  string
	address  string
	url      string

	wait sync.WaitGroup
	held chan *heldConn // connections of cutAndHold

	mu   sync.Mutex // protects what follows
	next cut        // done to the next COMMIT
	open map[net.Conn]struct{}
	lost map[net.Conn]struct{} // the proxy discards what these send
	mute bool                  // the proxy discards the first statement of new connections, and all later ones
}

// A heldConn is the server's side of a cut connection, with the COMMIT that was not sent.
type heldConn struct {
	server  net.Conn
	pending []byte
}

func newProxy(t testing.TB, target string) *proxy {
	t.Helper()
	config, err := pgx.ParseConfig(target)
	require.NoError(t, err)
	p := &proxy{t: t, held: make(chan *heldConn, 1), open: make(map[net.Conn]struct{}), lost: make(map[net.Conn]struct{})}
	p.network, p.address = pgconn.NetworkAddress(config.Host, config.Port)
	p.listener, err = net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	u := url.URL{
		Scheme: "postgres", User: url.UserPassword(config.User, config.Password), Host: p.listener.Addr().String(), Path: "/" + config.Database,
		RawQuery: "sslmode=disable&default_query_exec_mode=exec", // so that each COMMIT is sent as text
	}
	p.url = u.String()
	p.wait.Go(p.accept)
	t.Cleanup(p.close)
	return p
}

func (p *proxy) close() {
	_ = p.listener.Close()
	p.mu.Lock()
	for conn := range p.open {
		_ = conn.Close()
	}
	p.mu.Unlock()
	p.wait.Wait()
}

func (p *proxy) cutNextCommit(how cut) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next = how
}

// halfOpen discards what is sent on the present connections. Neither side notices.
func (p *proxy) halfOpen() {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.Copy(p.lost, p.open)
}

// muteNew discards what is sent on new connections, from their first statement on, until it is called with false.
func (p *proxy) muteNew(mute bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mute = mute
}

// resetLost closes the lost connections, so that both sides notice.
func (p *proxy) resetLost() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for conn := range p.lost {
		_ = conn.Close()
	}
}

func (p *proxy) isLost(conn net.Conn, sent []byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mute && bytes.Contains(sent, []byte("set_config")) {
		p.lost[conn] = struct{}{}
	}
	_, lost := p.lost[conn]
	return lost
}

func (p *proxy) takeCut() cut {
	p.mu.Lock()
	defer p.mu.Unlock()
	how := p.next
	p.next = noCut
	return how
}

func (p *proxy) track(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, conn := range conns {
		p.open[conn] = struct{}{}
	}
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial(p.network, p.address)
		if err != nil {
			_ = client.Close()
			continue
		}
		p.track(client, server)
		answered := make(chan struct{})
		watch := make(chan struct{}, 1)
		p.wait.Go(func() { p.answers(client, server, watch, answered) })
		p.wait.Go(func() { p.requests(client, server, watch, answered) })
	}
}

func (p *proxy) requests(client, server net.Conn, watch chan<- struct{}, answered <-chan struct{}) {
	buf := make([]byte, 1<<16)
	for {
		n, err := client.Read(buf)
		if err != nil {
			_ = server.Close()
			return
		}
		if p.isLost(client, buf[:n]) {
			continue
		}
		how := noCut
		if bytes.Contains(buf[:n], []byte("COMMIT")) {
			how = p.takeCut()
		}
		switch how {
		case noCut:
		case cutBefore:
			_, _ = client.Close(), server.Close()
			return
		case cutAfter:
			watch <- struct{}{}
			_, _ = server.Write(buf[:n])
			<-answered
			_, _ = client.Close(), server.Close()
			return
		case cutAndHold:
			p.held <- &heldConn{server: server, pending: bytes.Clone(buf[:n])}
			_ = client.Close()
			return
		}
		if _, err := server.Write(buf[:n]); err != nil {
			_ = client.Close()
			return
		}
	}
}

// answers passes on the server's answers, until the answer to a COMMIT that the client must not receive.
func (p *proxy) answers(client, server net.Conn, watch <-chan struct{}, answered chan<- struct{}) {
	buf := make([]byte, 1<<16)
	for {
		n, err := server.Read(buf)
		if err != nil {
			_ = client.Close()
			close(answered)
			return
		}
		select {
		case <-watch:
			for !bytes.Contains(buf[:n], []byte("COMMIT\x00")) {
				more, err := server.Read(buf[n:])
				if err != nil {
					break
				}
				n += more
			}
			close(answered)
			_, _ = io.Copy(io.Discard, server)
			return
		default:
		}
		_, _ = client.Write(buf[:n])
	}
}

// commit sends the held COMMIT.
func (h *heldConn) commit() error {
	_, err := h.server.Write(h.pending)
	return err
}

func (h *heldConn) drop() error { return h.server.Close() }

func (c cut) String() string {
	return fmt.Sprint([...]string{"none", "before", "after", "hold"}[c])
}
