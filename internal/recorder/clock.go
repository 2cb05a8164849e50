package recorder

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/kuberewind/kuberewind/sink/postgres"
)

const (
	// maxStep is how far the clock of this host may be from the record's or the database's before it matters.
	maxStep = time.Minute
	// watchClockEvery is how often the two are compared.
	watchClockEvery = 10 * time.Second
)

// host is the clock of the machine.
type host struct {
	wall    func() time.Time     // as it is set, without the monotonic reading
	elapsed func() time.Duration // what has passed, whatever it is set to
}

func thisHost() host {
	began := time.Now()
	return host{
		wall:    func() time.Time { return time.Now().Round(0) },
		elapsed: func() time.Duration { return time.Since(began) },
	}
}

// clock gives the times of observation. It begins at a time of the wall clock and goes on with the time that passes, so that a
// step of the wall clock does not reorder the record. It never shows a time below floor, the newest on record.
type clock struct {
	host

	mu    sync.Mutex // protects what follows
	base  time.Time  // what it shows when elapsed is zero
	floor time.Time
}

// newClock begins at a time.
func newClock(h host, at time.Time) *clock {
	c := &clock{host: h}
	c.set(at)
	return c
}

// Now has microseconds, as PostgreSQL does: what is compared later must be what was stored.
func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.base.Add(c.elapsed()).UTC().Truncate(time.Microsecond)
	if t.Before(c.floor) {
		return c.floor
	}
	c.floor = t
	return t
}

// raise keeps the clock from showing anything before floor. So a recorder whose clock is behind the record goes on from the
// record.
func (c *clock) raise(floor time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.floor.Before(floor) {
		c.floor = floor
	}
}

// set has it go on from a time. What it showed stays its floor.
func (c *clock) set(at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.base = at.Add(-c.elapsed())
}

// step is by how much the wall clock is ahead of it.
func (c *clock) step() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.wall().Sub(c.base.Add(c.elapsed()))
}

// agree reports whether two clocks show the same, as far as it matters.
func agree(a, b time.Time) bool { return a.Sub(b).Abs() <= maxStep }

// startTime is when a record goes on, by the clocks of the host and of the database. Record is the time to which it has come.
// If the clocks disagree, one that is behind the record is wrong. Otherwise the earlier one counts. A time that is too early
// is corrected when they agree. A time that is too late would stay, because the record's time does not go back.
func startTime(wall, database, record time.Time) time.Time {
	if agree(wall, database) {
		return wall
	}
	earlier, later := wall, database
	if database.Before(wall) {
		earlier, later = database, wall
	}
	if record = record.Add(-maxStep); earlier.Before(record) && !later.Before(record) {
		return later
	}
	return earlier
}

// A timekeeper watches the wall clock for steps. It adopts one of more than a minute only when the database's clock agrees, and puts it on record.
type timekeeper struct {
	clock *clock
	// ask gives the database's time, note puts a step on record.
	ask  func(ctx context.Context) (time.Time, error)
	note func(ctx context.Context, step postgres.ClockStep) error
	log  *slog.Logger

	refused time.Duration // the step that is on record as not adopted, 0 for none
}

// began puts on record what a recorder found at its start that is out of the ordinary: clocks that disagree, or a record that
// is ahead of them.
func (k *timekeeper) began(ctx context.Context, database time.Time) error {
	wall, now := k.clock.wall(), k.clock.Now()
	step := k.clock.step()
	adopted := agree(wall, database)
	if adopted && agree(wall, now) {
		return nil
	}
	if step.Abs() > maxStep {
		k.refused = step
	}
	k.tell(adopted, now, wall, database)
	return k.note(ctx, postgres.ClockStep{Record: now, Recorder: wall, Database: database, Adopted: adopted})
}

// look compares the clocks once.
func (k *timekeeper) look(ctx context.Context) error {
	step := k.clock.step()
	if step.Abs() <= maxStep {
		k.refused = 0
		return nil
	}
	database, err := k.ask(ctx)
	if err != nil {
		return err
	}
	wall := k.clock.wall()
	adopted := agree(wall, database)
	if !adopted && k.refused != 0 && (step-k.refused).Abs() <= maxStep {
		return nil
	}
	now := k.clock.Now()
	if err := k.note(ctx, postgres.ClockStep{Record: now, Recorder: wall, Database: database, Adopted: adopted}); err != nil {
		return err
	}
	k.tell(adopted, now, wall, database)
	k.refused = step
	if adopted {
		k.clock.set(k.clock.wall())
		k.refused = 0
	}
	return nil
}

func (k *timekeeper) tell(adopted bool, record, wall, database time.Time) {
	log := k.log.With("host", wall, "database", database, "record", record)
	switch {
	case !adopted:
		log.Error("the clocks of this host and of the database do not agree; set the one that is wrong")
	case record.After(wall.Add(maxStep)):
		log.Error("the record is ahead of the clocks: observed_at stands still until they have caught up")
	default:
		log.Warn("the clock of this host has stepped, and the database's agrees: it is adopted")
	}
}

// openClock begins the record's time, and gives what the database's clock said.
func (r *Recorder) openClock(ctx context.Context, clusterUID string) (database time.Time, err error) {
	conn, err := r.database.Connect(ctx)
	if err != nil {
		return database, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	limited, cancel := context.WithTimeoutCause(ctx, connectTimeout, errUnanswered)
	defer cancel()
	database, record, err := postgres.ReadClocks(limited, conn, clusterUID)
	if err != nil {
		return database, withCause(limited, err)
	}
	r.clock = newClock(r.host, startTime(r.host.wall(), database, record))
	return database, nil
}

// beginTime begins the record's time where the record ends, when the sink is open.
func (r *Recorder) beginTime(ctx context.Context, database time.Time) error {
	r.clock.raise(r.sink.Info().Started)
	r.now = r.clock.Now
	r.time = &timekeeper{clock: r.clock, ask: r.sink.DatabaseTime, note: r.sink.RecordClock, log: r.log}
	return r.time.began(ctx, database)
}

// keepTime watches the clocks until ctx ends. What fails is tried again: until then nothing is adopted.
func (r *Recorder) keepTime(ctx context.Context) error {
	ticker := time.NewTicker(watchClockEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		if err := r.time.look(ctx); err != nil && ctx.Err() == nil {
			r.log.Warn("a step of the clock was not looked into; trying again", "error", err)
		}
	}
}
