package session

import (
	"sync"
	"time"
)

// idleFor is how long a session lives after its last request.
const idleFor = 30 * time.Minute

// use counts the requests of a session, and ends the session after idleFor without requests.
type use struct {
	mu    sync.Mutex // protects what follows
	open  int        // requests in progress
	last  time.Time
	ended bool
}

// end refuses further requests.
func (u *use) end() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.ended = true
}

// expired reports whether the session has ended. It ends an idle session.
func (u *use) expired(now time.Time) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.ended = u.ended || u.open == 0 && now.Sub(u.last) >= idleFor
	return u.ended
}

// enter counts a request until the caller calls exit. ok is false if the session has ended.
func (u *use) enter() (exit func(), ok bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.ended {
		return nil, false
	}
	u.open++
	return func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.open--
		u.last = time.Now()
	}, true
}

// left returns how long the session lives without another request.
func (u *use) left(now time.Time) time.Duration {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.open > 0 {
		return idleFor
	}
	return max(idleFor-now.Sub(u.last), 0)
}

// expires returns when the session ends without another request, zero while a request is open.
func (u *use) expires() time.Time {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.open > 0 {
		return time.Time{}
	}
	return u.last.Add(idleFor)
}
