package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A wire is the network between the recorder and one server. No other client uses it.
type wire struct {
	network, server string
	address         string
	wait            sync.WaitGroup

	mu       sync.Mutex // protects what follows
	listener net.Listener
	links    map[*link]struct{}
	deaf     bool // connections are accepted, and no bytes are forwarded
	ended    []span
	other    string // another server, to which every second connection goes; "" for none
	turn     bool   // the next connection goes there
}

// A span is the time in which a connection could be used.
type span struct{ since, until time.Time }

// link is a connection of the recorder, together with its connection to the server.
type link struct {
	client, server net.Conn
	since          time.Time
	deaf           bool // for ever, because bytes that are forwarded late would break the protocol
}

// A wire that refuses does not listen, and has to find its port free again. So it takes no port that systems give to outgoing
// connections (32768 and up on Linux), and none of a control plane.
const firstPort, lastPort = 10000, 20000

func newWire(t *testing.T, network, server string) *wire {
	t.Helper()
	w := &wire{network: network, server: server, links: map[*link]struct{}{}}
	err := errors.New("no port was tried")
	for tries := 0; err != nil && tries < 100; tries++ {
		w.address = fmt.Sprintf("127.0.0.1:%d", firstPort+rand.IntN(lastPort-firstPort))
		err = w.mend()
	}
	require.NoError(t, err)
	t.Cleanup(w.refuse)
	return w
}

// mend makes new connections work. Deaf connections stay deaf, as half-open ones do.
func (w *wire) mend() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.deaf = false
	if w.listener != nil {
		return nil
	}
	listener, err := net.Listen("tcp", w.address)
	if err != nil {
		return err
	}
	w.listener = listener
	w.wait.Go(func() { w.accept(listener) })
	return nil
}

// reset ends all connections, and accepts new ones.
func (w *wire) reset() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for l := range w.links {
		l.close()
	}
}

// share sends every second new connection to another server; "" for none.
func (w *wire) share(other string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.other = other
}

// next returns the server of the next connection.
func (w *wire) next() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.turn = !w.turn && w.other != ""
	if w.turn {
		return w.other
	}
	return w.server
}

// refuse ends all connections and accepts no new ones.
func (w *wire) refuse() {
	w.mu.Lock()
	if w.listener != nil {
		_ = w.listener.Close()
		w.listener = nil
	}
	w.mu.Unlock()
	w.reset()
	w.wait.Wait()
}

// drop discards all bytes on all connections, also on new ones, and ends none of them.
func (w *wire) drop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.deaf = true
	for l := range w.links {
		w.endedLocked(l)
		l.deaf = true
	}
}

// endedLocked notes that a connection cannot be used any more. It may be called more than once.
func (w *wire) endedLocked(l *link) {
	if !l.deaf {
		w.ended = append(w.ended, span{l.since, time.Now()})
	}
}

// lasted reports whether one connection could be used all the time.
func (w *wire) lasted(from, to time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for l := range w.links {
		if !l.deaf && l.since.Before(from) {
			return true
		}
	}
	return slices.ContainsFunc(w.ended, func(s span) bool { return s.since.Before(from) && s.until.After(to) })
}

func (w *wire) accept(listener net.Listener) {
	for {
		client, err := listener.Accept()
		if err != nil {
			return
		}
		var dialer net.Dialer
		server, err := dialer.DialContext(context.Background(), w.network, w.next())
		if err != nil {
			_ = client.Close()
			continue
		}
		w.mu.Lock()
		l := &link{client: client, server: server, since: time.Now(), deaf: w.deaf}
		w.links[l] = struct{}{}
		if w.listener != listener {
			l.close()
		}
		w.wait.Go(func() { w.forward(l) })
		w.mu.Unlock()
	}
}

// forward forwards both directions until both have ended.
func (w *wire) forward(l *link) {
	var both sync.WaitGroup
	both.Go(func() { w.copy(l, l.server, l.client) })
	both.Go(func() { w.copy(l, l.client, l.server) })
	both.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.endedLocked(l)
	delete(w.links, l)
}

// copy forwards bytes while the link is not deaf. A deaf link does not forward the end of a connection either.
func (w *wire) copy(l *link, to io.Writer, from io.Reader) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if w.isDeaf(l) {
			if err != nil && from == l.client {
				l.close()
			}
			if err != nil {
				return
			}
			continue
		}
		if n > 0 {
			if _, failed := to.Write(buffer[:n]); failed != nil {
				err = failed
			}
		}
		if err != nil {
			l.close()
			return
		}
	}
}

func (w *wire) isDeaf(l *link) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return l.deaf
}

// close may be called more than once.
func (l *link) close() {
	_ = l.client.Close()
	_ = l.server.Close()
}
