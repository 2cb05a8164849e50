package badinput_test

import (
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"
)

// faults are what requests of one kind meet before they are served.
type faults struct {
	mu    sync.Mutex // protects queue
	queue []*fault
}

// fault is met by a number of requests.
type fault struct {
	answer http.HandlerFunc
	left   int // requests; below zero: all, until it is lifted
	met    chan struct{}
	once   sync.Once
}

// always is the number of requests of a fault that stays until it is lifted.
const always = -1

// add makes the next so many requests meet the fault.
func (f *faults) add(requests int, answer http.HandlerFunc) *fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	added := &fault{answer: answer, left: requests, met: make(chan struct{})}
	f.queue = append(f.queue, added)
	return added
}

// lift takes all faults away.
func (f *faults) lift() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.queue = nil
}

// next is the fault that a request meets, nil for none.
func (f *faults) next() *fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.queue) == 0 {
		return nil
	}
	first := f.queue[0]
	if first.left--; first.left == 0 {
		f.queue = f.queue[1:]
	}
	return first
}

// or lets a request meet a fault, or else be served.
func (f *faults) or(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc) {
	met := f.next()
	if met == nil {
		serve(w, r)
		return
	}
	// A fault may end its request with a panic.
	defer met.once.Do(func() { close(met.met) })
	met.answer(w, r)
}

// await returns when the first request of a recorder has met the fault.
func (f *fault) await(t *testing.T, r *recording) {
	t.Helper()
	select {
	case <-f.met:
	case <-r.done:
		select {
		case <-f.met:
			return
		default:
		}
		t.Fatalf("the recorder ended (%v) and no request has met the fault", r.err)
	case <-time.After(patience):
		t.Fatal("no request has met the fault")
	}
}

// A Status in place of what was asked for.
func refuse(code int, reason, message string, retryAfter int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if retryAfter > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(retryAfter))
		}
		answer(w, code, status(code, reason, message, retryAfter))
	}
}

const loginPage = "<!DOCTYPE html>\n<html><head><title>Sign in</title></head><body>Who are you?</body></html>"

// A proxy that wants a login.
func html(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write([]byte(loginPage)) // the client may be gone
}

// Nothing, for as long as the client waits.
func silence(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// abort ends a response in its middle, as a server that dies does.
func abort() { panic(http.ErrAbortHandler) }
