package clock

import (
	"sync"
	"time"
)

// maxStep is the maximum difference between two clocks that count as equal.
const maxStep = time.Minute

// Host is the clock of the machine.
type Host struct {
	Wall    func() time.Time     // the wall clock, without the monotonic reading
	Elapsed func() time.Duration // the time that has passed, independent of the wall clock
}

// ThisHost returns the clock of this machine.
func ThisHost() Host {
	began := time.Now()
	return Host{
		Wall:    func() time.Time { return time.Now().Round(0) },
		Elapsed: func() time.Duration { return time.Since(began) },
	}
}

// Clock returns the times of observation. It starts at a given time and advances with the elapsed time, so that a step of the wall clock does
// not reorder the record. It never returns a time before floor, the newest time on record.
type Clock struct {
	host Host

	mu    sync.Mutex // protects the fields below
	base  time.Time  // the time at which Elapsed was zero
	floor time.Time
}

// New returns a Clock that starts at a time.
func New(h Host, at time.Time) *Clock {
	c := &Clock{host: h}
	c.set(at)
	return c
}

// Now returns the time in whole microseconds, as PostgreSQL stores it, so that a stored time is equal to the original.
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

// Raise sets a floor: the clock returns no time before it. So a recorder whose clock is behind the record continues from the time of the
// record.
func (c *Clock) Raise(floor time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.floor.Before(floor) {
		c.floor = floor
	}
}

// set continues the clock from a time. The floor stays, so the clock does not go back.
func (c *Clock) set(at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.base = at.Add(-c.host.Elapsed())
}

// step returns how much the wall clock is ahead of this clock.
func (c *Clock) step() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.host.Wall().Sub(c.base.Add(c.host.Elapsed()))
}

// agree reports whether two times differ by at most maxStep.
func agree(a, b time.Time) bool { return a.Sub(b).Abs() <= maxStep }

// Start returns the time at which a recorder continues the record. Wall and database are the clocks of the host and of the database; record
// is the newest time on record. If the two clocks disagree and only one of them is behind the record, that one is wrong. Otherwise the
// earlier one counts: if it is too early, the Keeper corrects it when the clocks agree. A time that is too late could not be corrected,
// because the record's time does not go back.
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
