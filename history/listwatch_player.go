package history

import (
	"context"
	"math"
	"sync"
	"time"
)

// PlayerOptions say what is played, and how fast.
type PlayerOptions struct {
	// From is where the lists stand: the first event is the one after it.
	From Instant
	// Until is the last instant that is played. The zero value is the end of the record when the Player starts.
	Until Instant
	// Speed is how many seconds of the record pass in one: 1 is real time, 0 is as fast as the events are taken.
	Speed float64
	// Damaged is called with each row that cannot be given and is left out. If it is nil, the first one ends the watch with an
	// error.
	Damaged func(*DamagedError)
}

// A Player keeps several ListWatches in step: an event is handed over when every event with a lower seq has been, of whatever resource.
// Nothing moves before each ListWatch of the Player is watched. A watch that is stopped is waited for no longer.
//
// It tells the time of the record: it satisfies k8s.io/utils/clock.PassiveClock, for controllers that take a clock.
type Player struct {
	record  source
	options PlayerOptions

	resolving sync.Mutex // held while from and until are found
	from      *Point
	until     *Point

	mu       sync.Mutex // protects what follows
	members  map[*member]struct{}
	lists    int       // that are not done
	origin   time.Time // From, as a time
	now      time.Time
	begun    time.Time // when origin was, by the wall clock of this play
	done     chan struct{}
	finished bool // done is closed
	failed   chan struct{}
	err      error // set once, then failed is closed
}

// A member is a watch, or a ListWatch that is not watched yet.
type member struct {
	bound int64         // no event with a lower seq is to come
	waits bool          // for its turn, to hand over the event with seq bound
	turn  chan struct{} // has room for one
}

// NewPlayer makes a Player for ListWatchOptions. Make all ListWatches of a Player before any of them is used.
func NewPlayer(record *Record, o PlayerOptions) *Player { return newPlayer(record, o) }

func newPlayer(record source, o PlayerOptions) *Player {
	return &Player{
		record: record, options: o, members: make(map[*member]struct{}), done: make(chan struct{}), failed: make(chan struct{}),
	}
}

// Done is closed when all ListWatches have handed over everything up to Until.
func (p *Player) Done() <-chan struct{} { return p.done }

// Wait waits until Done, or until a list or watch met an error, which it returns: informers try again after one, and may yet come
// to the end.
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

// Now is the time of the record: observed_at of the event that was handed over last, and From before the first. It is the zero time
// before anything was listed.
func (p *Player) Now() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.now
}

// Since is the time of the record that has passed since then.
func (p *Player) Since(then time.Time) time.Duration { return p.Now().Sub(then) }

// points finds From and Until, once for all ListWatches. An instant by resource version is found in the resource's own streams.
func (p *Player) points(ctx context.Context, scope Scope) (from, until Point, err error) {
	p.resolving.Lock()
	defer p.resolving.Unlock()
	// The end first: with a recorder at work, From must not be beyond it.
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
			found.Time = found.recorded // Nothing is on record from there to the wall clock's now, so nobody waits for it.
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

// add makes a ListWatch a member that holds up everyone until it is watched.
func (p *Player) add() *member {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lists++
	m := &member{turn: make(chan struct{}, 1)}
	p.members[m] = struct{}{}
	return m
}

// finish says that a ListWatch is done.
func (p *Player) finish() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lists--; p.lists == 0 && !p.finished {
		p.finished = true
		close(p.done)
	}
}

// join makes a watch a member whose next event is not before bound.
func (p *Player) join(bound int64) *member {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := &member{bound: bound, turn: make(chan struct{}, 1)}
	p.members[m] = struct{}{}
	return m
}

func (p *Player) leave(m *member) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.members, m)
	p.wake()
}

// await waits until it is the turn of the member's event with this seq, and its time has come. The turn lasts until pass.
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

// pass ends the turn: the member's next event is not before bound.
func (p *Player) pass(m *member, bound int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	m.bound = bound
	p.wake()
}

// wake gives the turn to its owner: to several only if they watch the same stream. The caller holds mu.
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

// pace waits until the time of an event has come. The clock runs from the first event that anyone could hand over.
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

// played is how long it takes to play the record up to a time. The caller holds mu.
func (p *Player) played(at time.Time) time.Duration {
	return time.Duration(float64(at.Sub(p.origin)) / p.options.Speed)
}
