package apiserver

import (
	"context"
	"net"
	"sync"
)

// A Pipe is a listener with connections in memory. If a client does not read, the server blocks.
type Pipe struct {
	conns chan net.Conn
	end   chan struct{}
	once  sync.Once
}

// NewPipe makes a listener.
func NewPipe() *Pipe { return &Pipe{conns: make(chan net.Conn), end: make(chan struct{})} }

// Dial connects a client.
func (p *Pipe) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case p.conns <- server:
		return client, nil
	case <-p.end:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept implements net.Listener.
func (p *Pipe) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case <-p.end:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (p *Pipe) Close() error {
	p.once.Do(func() { close(p.end) })
	return nil
}

// Addr implements net.Listener.
func (p *Pipe) Addr() net.Addr { return &net.TCPAddr{} }
