package session

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/kuberewind/kuberewind/apiserver/internal/clock"
	"github.com/kuberewind/kuberewind/history"
)

const (
	// tickEvery is how often a clock that plays moves its root.
	tickEvery = 100 * time.Millisecond
	// lookEvery is how often it is looked whether the record has grown, and whether it is back.
	lookEvery = 250 * time.Millisecond
	// idleFor is how long a session lives after its last request.
	idleFor = 30 * time.Minute
	// momentsRead is how many deltas a session knows the times of, and advances by, at once.
	momentsRead = 1000
)

// A session is one clock, and the root that follows it.
type session struct {
	name    string
	cluster string // the UID
	owner   string
	record  Record
	root    Root
	log     *slog.Logger

	woken chan struct{} // the clock was set
	stop  context.CancelFunc

	moves    chan struct{}    // holds one while the root is moved; it protects what follows
	upcoming []history.Moment // the next steps, in order
	passed   int64            // last commit that ended a gap without a delta, and that the root has come to

	mu      sync.Mutex // protects what follows
	clock   clock.Clock
	reached time.Time // up to when all deltas were delivered
	atEnd   bool
	problem string
	open    int // requests that are served
	last    time.Time
	ended   bool
}

// run moves the root until the session ends.
func (s *session) run(ctx context.Context) {
	defer s.root.Close()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			s.end()
			return
		case <-s.woken:
		case <-timer.C:
		}
		if s.expired(time.Now()) {
			return
		}
		timer.Reset(s.tick(ctx))
	}
}

// end refuses further requests.
func (s *session) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
}

// expired ends a session that nobody uses.
func (s *session) expired(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = s.ended || s.open == 0 && now.Sub(s.last) >= idleFor
	return s.ended
}

// enter counts a request until leave is called. ok is false if the session has ended.
func (s *session) enter() (leave func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return nil, false
	}
	s.open++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.open--
		s.last = time.Now()
	}, true
}

// tick advances the root to where the clock is, and says when to look again.
func (s *session) tick(ctx context.Context) time.Duration {
	if s.move(ctx) != nil {
		return lookEvery
	}
	defer s.moved()
	s.mu.Lock()
	playing, shown, left := s.clock.Playing(), s.clock.Time(time.Now()), s.left(time.Now())
	s.mu.Unlock()
	if !playing {
		return left
	}
	to, end, err := s.due(ctx, shown)
	if err == nil && to.Seq > 0 {
		if err = s.root.Advance(ctx, to.Seq, to.Batch); err == nil {
			s.passed = max(s.passed, to.Batch)
		}
	}
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
	if len(s.upcoming) == 0 { // The next step may be due as well.
		s.reached = to.At
		return 0
	}
	s.reached = shown
	return tickEvery
}

// left is how long the session lives if nobody uses it. mu is held.
func (s *session) left(now time.Time) time.Duration {
	if s.open > 0 {
		return idleFor
	}
	return max(idleFor-now.Sub(s.last), 0)
}

// move waits for its turn to move the root.
func (s *session) move(ctx context.Context) error {
	select {
	case s.moves <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *session) moved() { <-s.moves }

// due gives the last of the next deltas and ends of gaps whose time has come, if there is one. end is until when the record goes, if nothing comes any more.
func (s *session) due(ctx context.Context, shown time.Time) (to history.Moment, end time.Time, err error) {
	if len(s.upcoming) == 0 {
		if s.upcoming, err = s.record.Moments(ctx, history.Moment{Seq: s.root.Seq(), Batch: s.passed}, momentsRead); err != nil {
			return to, end, err
		}
	}
	if len(s.upcoming) == 0 {
		extent, err := s.record.Extent(ctx)
		return to, extent.LastAt, err
	}
	for len(s.upcoming) > 0 && !s.upcoming[0].At.After(shown) {
		to, s.upcoming = s.upcoming[0], s.upcoming[1:]
	}
	return to, end, nil
}

// ends has the clock wait at the end of the record. mu is held.
func (s *session) ends(shown, end time.Time) {
	if end.Before(shown) {
		shown = end
		s.clock = s.clock.Seek(time.Now(), end)
	}
	s.problem, s.atEnd, s.reached = "", true, shown
}

// fails has the clock stand still, and keeps why. mu is held.
func (s *session) fails(ctx context.Context, err error) {
	s.upcoming = nil
	s.clock = s.clock.Seek(time.Now(), s.reached)
	if ctx.Err() != nil {
		return
	}
	if s.problem == "" {
		s.log.WarnContext(ctx, "a session cannot go on; it is tried again", "session", s.name, "error", err)
	}
	s.problem = err.Error()
}

// wake has the goroutine look at the clock.
func (s *session) wake() {
	select {
	case s.woken <- struct{}{}:
	default:
	}
}
