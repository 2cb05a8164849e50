package session

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/kuberewind/kuberewind/apiserver/internal/clock"
)

const (
	// tickEvery is how often a playing clock moves its root.
	tickEvery = 100 * time.Millisecond
	// lookEvery is how often a session checks whether the record has grown, or can be read again.
	lookEvery = 250 * time.Millisecond
)

// A session is a clock, and the root that follows it.
type session struct {
	name    string
	cluster string // the UID
	owner   string
	log     *slog.Logger
	use     *use

	woken chan struct{} // the clock was set
	stop  context.CancelFunc

	moves chan struct{} // has one element while the root is moved; it protects the steps; their past and root never change
	steps *steps

	mu      sync.Mutex // protects what follows
	clock   clock.Clock
	reached time.Time // all deltas up to this time were delivered
	atEnd   bool
	problem string
}

// run moves the root until the session ends.
func (s *session) run(ctx context.Context) {
	defer s.steps.root.Close()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			s.use.end()
			return
		case <-s.woken:
		case <-timer.C:
		}
		if s.use.expired(time.Now()) {
			return
		}
		timer.Reset(s.tick(ctx))
	}
}

// tick advances the root to the time of the clock, and returns the delay until the next tick.
func (s *session) tick(ctx context.Context) time.Duration {
	if s.move(ctx) != nil {
		return lookEvery
	}
	defer s.moved()
	s.mu.Lock()
	playing, shown := s.clock.Playing(), s.clock.Time(time.Now())
	s.mu.Unlock()
	if !playing {
		return s.use.left(time.Now())
	}
	to, end, err := s.steps.advance(ctx, shown)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err != nil:
		s.fails(ctx, err)
		return lookEvery
	case !end.IsZero():
		s.ends(shown, end)
		return lookEvery
	}
	s.problem, s.atEnd = "", false
	if s.steps.empty() { // The next step may be due as well.
		s.reached = to.At
		return 0
	}
	s.reached = shown
	return tickEvery
}

// move waits until no other call moves the root.
func (s *session) move(ctx context.Context) error {
	select {
	case s.moves <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *session) moved() { <-s.moves }

// ends makes the clock wait at the end of the record. mu is held.
func (s *session) ends(shown, end time.Time) {
	if end.Before(shown) {
		shown = end
		s.clock = s.clock.Seek(time.Now(), end)
	}
	s.problem, s.atEnd, s.reached = "", true, shown
}

// fails stops the clock and keeps the reason. mu is held.
func (s *session) fails(ctx context.Context, err error) {
	s.steps.forget()
	s.clock = s.clock.Seek(time.Now(), s.reached)
	if ctx.Err() != nil {
		return
	}
	if s.problem == "" {
		s.log.WarnContext(ctx, "advancing a session failed; will retry", "session", s.name, "error", err)
	}
	s.problem = err.Error()
}

// wake makes the goroutine check the clock.
func (s *session) wake() {
	select {
	case s.woken <- struct{}{}:
	default:
	}
}
