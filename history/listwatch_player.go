package history

import (
	"context"
	"math"
	"sync"
	"time"
)

// PlayerOptions select what a Player plays, and how fast.
type PlayerOptions struct {
	// From is the instant that lists show. The first event is the next one after it.
	From Instant
	// Until is the last instant to play. The zero value is the end of the record when the Player starts.
	Until Instant
	// Speed is how many seconds of the record pass in one second: 1 is real time; 0 is as fast as consumers take the
	// events.
	Speed float64
	// Damaged is called with each row that cannot be folded; the watch skips that row. If Damaged is nil, the first such
	// row ends the watch with an error.
	Damaged func(*DamagedError)
}

// A Player keeps several ListWatches in step: it delivers an event after every event with a lower seq, of any resource. It
// delivers nothing before each of its ListWatches is watched. It does not wait for a watch that is stopped.
//
// A Player shows the time of the record: it satisfies k8s.io/utils/clock.PassiveClock, for controllers that take a clock.
type Player struct {
	record  source
	options PlayerOptions

	resolving sync.Mutex // held while the Player finds from and until
	from      *Point
	until     *Point

	mu       sync.Mutex // protects what follows
	members  map[*member]struct{}
	lists    int       // how many are not done
	origin   time.Time // From, as a time
	now      time.Time
	begun    time.Time // the wall clock's time of origin in this play
	done     chan struct{}
	finished bool // done is closed
	failed   chan struct{}
	err      error // set once, then failed is closed
}

// A member is a watch, or a ListWatch that is not watched yet.
type member struct {
	bound int64         // no event with a lower seq will come
	waits bool          // for its turn to deliver the event with seq bound
	turn  chan struct{} // has room for one
}

// NewPlayer returns a Player for ListWatchOptions. Create all ListWatches of a Player before you use any of them.
func NewPlayer(record *Record, o PlayerOptions) *Player { return newPlayer(record, o) }

func newPlayer(record source, o PlayerOptions) *Player {
	return &Player{
		record: record, options: o, members: make(map[*member]struct{}), done: make(chan struct{}), failed: make(chan struct{}),
	}
}

// Done is closed when all ListWatches have delivered everything up to Until.
func (p *Player) Done() <-chan struct{} { return p.done }

// Wait waits until Done is closed, or until a list or watch fails. It returns that error. Informers retry after an error,
// so they may still reach the end.
func (p *Player) Wait(ctx context.Context) error { return p.wait(ctx, p.done) }

func (p *Player) wait(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		select {
		case <-p.failed:
			return p.err
		default:
			return nil
		}
	case <-p.failed:
		return p.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Now returns the time of the record: observed_at of the last delivered event, or From before the first event. At the
// end it is Until. It is the zero time before the first list.
func (p *Player) Now() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.now
}

// Since returns how much time of the record has passed since then.
func (p *Player) Since(then time.Time) time.Duration { return p.Now().Sub(then) }

// points finds From and Until, once for all ListWatches. It finds an instant by resource version in the resource's own
// streams.
func (p *Player) points(ctx context.Context, scope Scope) (from, until Point, err error) {
	p.resolving.Lock()
	defer p.resolving.Unlock()
	// Find the end first: a recorder may be running, and From must not be beyond Until.
	if until, err = p.point(ctx, p.options.Until, scope, &p.until); err == nil {
		from, err = p.point(ctx, p.options.From, scope, &p.from)
	}
	if err != nil {
		return from, until, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.origin.IsZero() {
		p.origin, p.now = from.Time, from.Time
	}
	return from, until, nil
}

func (p *Player) point(ctx context.Context, at Instant, scope Scope, kept **Point) (Point, error) {
	if at.RV() != "" {
		return p.record.Resolve(ctx, at, Scope{Streams: scope.Streams})
	}
	if *kept == nil {
		found, err := p.record.Resolve(ctx, at, Scope{})
		if err != nil {
			return Point{}, err
		}
		if at.IsNow() && found.Time.After(found.recorded) {
			found.Time = found.recorded // The record holds nothing after its end, so no watch waits for the wall clock's now.
		}
		*kept = &found
	}
	return **kept, nil
}

func (p *Player) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil {
		p.err = err
		close(p.failed)
	}
}

// add makes a ListWatch a member that holds up all others until it is watched.
func (p *Player) add() *member {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lists++
	m := &member{turn: make(chan struct{}, 1)}
	p.members[m] = struct{}{}
	return m
}

// finish counts a ListWatch as done.
func (p *Player) finish() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lists--; p.lists == 0 && !p.finished {
		p.finished = true
		close(p.done)
	}
}

// join makes a watch a member. Its next event has at least seq bound.
func (p *Player) join(bound int64) *member {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := &member{bound: bound, turn: make(chan struct{}, 1)}
	p.members[m] = struct{}{}
	return m
}

func (p *Player) remove(m *member) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.members, m)
	p.wake()
}

// await waits until it is the turn of the member's event with this seq, and its time has come. The turn lasts until endTurn.
func (p *Player) await(ctx context.Context, m *member, seq int64, at time.Time) error {
	p.mu.Lock()
	m.bound, m.waits = seq, true
	p.wake()
	p.mu.Unlock()
	select {
	case <-m.turn:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if err := p.pace(ctx, at); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.now.Before(at) {
		p.now = at
	}
	return nil
}

// endTurn ends the turn: the member's next event has at least seq bound.
func (p *Player) endTurn(m *member, bound int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	m.bound = bound
	p.wake()
}

// wake gives the turn to the member with the lowest event. Several members get it only if they watch the same stream, or
// wait for the end. The caller holds mu.
func (p *Player) wake() {
	first := int64(math.MaxInt64)
	for m := range p.members {
		first = min(first, m.bound)
	}
	for m := range p.members {
		if m.waits && m.bound == first {
			m.waits = false
			m.turn <- struct{}{}
		}
	}
}

// pace waits until the time of an event has come. The clock starts with the first event that any watch could deliver.
func (p *Player) pace(ctx context.Context, at time.Time) error {
	if p.options.Speed <= 0 {
		return nil
	}
	p.mu.Lock()
	if p.begun.IsZero() {
		p.begun = time.Now().Add(-p.played(p.now))
	}
	due := p.begun.Add(p.played(at))
	p.mu.Unlock()
	timer := time.NewTimer(time.Until(due))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// played returns how long it takes to play the record up to a time. The caller holds mu.
func (p *Player) played(at time.Time) time.Duration {
	return time.Duration(float64(at.Sub(p.origin)) / p.options.Speed)
}
