package telemetry

import (
	"net"
	"net/http"
	"slices"
	"sync"
)

// maxConnections is more than probes and scrapes need.
const maxConnections = 100

// connections bounds the number of open connections. It closes the oldest for a new one, so that a client with many connections does not block
// a probe.
type connections struct {
	mu   sync.Mutex // protects open
	open []net.Conn // oldest first
}

// changed implements http.Server.ConnState.
func (c *connections) changed(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch state {
	case http.StateNew:
		if len(c.open) == maxConnections {
			_ = c.open[0].Close() // its goroutine gets an error and ends
			c.open = slices.Delete(c.open, 0, 1)
		}
		c.open = append(c.open, conn)
	case http.StateClosed, http.StateHijacked:
		c.open = slices.DeleteFunc(c.open, func(o net.Conn) bool { return o == conn })
	default: // It stays open.
	}
}
