package clock

import (
	"sync"
	"time"
)

// maxStep is how far the clock of this host may be from the record's or the database's before it matters.
const maxStep = time.Minute

// Host is the clock of the machine.
type Host struct {
	Wall    func() time.Time     // as it is set, without the monotonic reading
	Elapsed func() time.Duration // what has passed, whatever it is set to
}

// ThisHost is the clock of this machine.
func ThisHost() Host {
	began := time.Now()
	return Host{
		Wall:    func() time.Time { return time.Now().Round(0) },
		Elapsed: func() time.Duration { return time.Since(began) },
	}
}

// Clock gives the times of observation. It begins at a time of the wall clock and goes on with the time that passes, so that a
// step of the wall clock does not reorder the record. It never shows a time below floor, the newest on record.
type Clock struct {
	host Host

	mu    sync.Mutex // protects what follows
	base  time.Time  // what it shows when elapsed is zero
	floor time.Time
}

// New begins at a time.
func New(h Host, at time.Time) *Clock {
	c := &Clock{host: h}
	c.set(at)
	return c
}

// Now has microseconds, as PostgreSQL does: what is compared later must be what was stored.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.base.Add(c.host.Elapsed()).UTC().Truncate(time.Microsecond)
	if t.Before(c.floor) {
		return c.floor
	}
	c.floor = t
	return t
}

// Raise keeps the clock from showing anything before floor. So a recorder whose clock is behind the record goes on from the
// record.
func (c *Clock) Raise(floor time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.floor.Before(floor) {
		c.floor = floor
	}
}

// set has it go on from a time. What it showed stays its floor.
func (c *Clock) set(at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.base = at.Add(-c.host.Elapsed())
}

// step is by how much the wall clock is ahead of it.
func (c *Clock) step() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.host.Wall().Sub(c.base.Add(c.host.Elapsed()))
}

// agree reports whether two clocks show the same, as far as it matters.
func agree(a, b time.Time) bool { return a.Sub(b).Abs() <= maxStep }

// Start is when a record goes on, by the clocks of the host and of the database. Record is the time to which it has come.
// If the clocks disagree, one that is behind the record is wrong. Otherwise the earlier one counts. A time that is too early
// is corrected when they agree. A time that is too late would stay, because the record's time does not go back.
func Start(wall, database, record time.Time) time.Time {
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
