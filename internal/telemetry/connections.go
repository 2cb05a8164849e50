package telemetry

import (
	"net"
	"net/http"
	"slices"
	"sync"
)

// mostConnections is more than probes and scrapes need.
const mostConnections = 100

// connections keeps the number of open connections bounded. The oldest gives way to a new one: a client that opens many does
// not keep a probe out.
type connections struct {
	mu   sync.Mutex // protects open
	open []net.Conn // oldest first
}

// changed is for http.Server.ConnState.
func (c *connections) changed(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch state {
	case http.StateNew:
		if len(c.open) == mostConnections {
			_ = c.open[0].Close() // its goroutine finds out
			c.open = slices.Delete(c.open, 0, 1)
		}
		c.open = append(c.open, conn)
	case http.StateClosed, http.StateHijacked:
		c.open = slices.DeleteFunc(c.open, func(o net.Conn) bool { return o == conn })
	default: // It stays open.
	}
}
