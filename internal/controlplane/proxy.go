package controlplane

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// dialTimeout bounds the proxy's connection to its server, which is on the same machine.
const dialTimeout = 5 * time.Second

// acceptPause keeps the proxy from spinning while the process has no file descriptor left.
const acceptPause = 10 * time.Millisecond

// proxy stands between clients and one server and forwards bytes. Its address stays the same while the server
// changes ports, and it can cut the connections that are open, which no client or server could be made to do.
// While the server is down the proxy is closed: clients find no listener, as they would without the proxy.
type proxy struct {
	goroutines sync.WaitGroup // one per listener and per link; Go is called with mu held
	mu         sync.Mutex     // guards everything below
	address    string         // "" before the first open
	server     string
	listener   net.Listener // nil while closed
	links      map[*link]struct{}
}

// link is one client's connection and the one to the server that belongs to it.
type link struct{ client, server net.Conn }

func newProxy() *proxy { return &proxy{links: map[*link]struct{}{}} }

// open listens, at the same address each time, for connections to the server. It does nothing if the proxy is open.
func (p *proxy) open(ctx context.Context, server string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener != nil {
		return nil
	}
	listener, err := p.listen(ctx)
	if err != nil {
		return err
	}
	p.listener, p.server, p.address = listener, server, listener.Addr().String()
	// The proxy outlives the start that opens it.
	ctx = context.WithoutCancel(ctx)
	p.goroutines.Go(func() { p.accept(ctx, listener) })
	return nil
}

func (p *proxy) listen(ctx context.Context) (net.Listener, error) {
	if p.address != "" {
		return listenOn(ctx, p.address)
	}
	var failure error
	for range bindAttempts {
		port, err := freePort(ctx)
		if err != nil {
			return nil, err
		}
		listener, err := listenOn(ctx, address(port))
		if err == nil {
			return listener, nil
		}
		failure = err
	}
	return nil, failure
}

// close ends listening and all connections, and returns when nothing is passed on any more.
func (p *proxy) close() {
	p.mu.Lock()
	if p.listener != nil {
		_ = p.listener.Close()
		p.listener = nil
	}
	p.cutLocked()
	p.mu.Unlock()
	p.goroutines.Wait()
}

// cut ends all connections; new ones are taken. It returns how many clients were cut off.
func (p *proxy) cut() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cutLocked()
}

func (p *proxy) cutLocked() int {
	count := len(p.links)
	for link := range p.links {
		link.close()
	}
	clear(p.links)
	return count
}

func (p *proxy) accept(ctx context.Context, listener net.Listener) {
	for {
		client, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			<-time.After(acceptPause)
			continue
		}
		p.connect(ctx, listener, client)
	}
}

// connect pairs the client with a connection to the server, unless the proxy has been closed meanwhile.
func (p *proxy) connect(ctx context.Context, listener net.Listener, client net.Conn) {
	dialer := net.Dialer{Timeout: dialTimeout}
	server, err := dialer.DialContext(ctx, "tcp", p.serverAddress())
	if err != nil {
		_ = client.Close() // the client sees the end of the connection; an error has no other reader
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	pair := &link{client: client, server: server}
	if p.listener != listener {
		pair.close()
		return
	}
	p.links[pair] = struct{}{}
	p.goroutines.Go(func() { p.serve(pair) })
}

func (p *proxy) serverAddress() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.server
}

func (p *proxy) serve(pair *link) {
	var directions sync.WaitGroup
	directions.Go(func() { pair.forward(pair.server, pair.client) })
	directions.Go(func() { pair.forward(pair.client, pair.server) })
	directions.Wait()
	pair.close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, pair)
}

// forward copies until one end closes. A clean end is forwarded as one, so that the last bytes of the other direction
// still arrive; anything else ends both.
func (l *link) forward(to, from net.Conn) {
	_, err := io.Copy(to, from)
	if err == nil {
		err = to.(*net.TCPConn).CloseWrite()
	}
	if err != nil {
		l.close()
	}
}

// close may be called more than once; an error about a connection that is already gone has no reader.
func (l *link) close() {
	_ = l.client.Close()
	_ = l.server.Close()
}

// clientAddress is "" before the first open.
func (p *proxy) clientAddress() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.address
}
