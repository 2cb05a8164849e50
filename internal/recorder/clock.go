package recorder

import (
	"sync"
	"time"
)

// clock gives the times of observation: wall time at its start plus the monotonic clock since, so that a step of the
// wall clock does not reorder the record, and never below floor, the newest time on record.
type clock struct {
	now   func() time.Time
	start time.Time

	mu    sync.Mutex // protects floor
	floor time.Time
}

// newClock starts at the floor, so that a recorder whose wall clock is behind the record goes on from the record.
func newClock(now func() time.Time, floor time.Time) *clock {
	return &clock{now: now, start: now(), floor: floor}
}

// Now has microseconds, as PostgreSQL does: what is compared later must be what was stored.
func (c *clock) Now() time.Time {
	t := c.start.Add(c.now().Sub(c.start)).UTC().Truncate(time.Microsecond)
	c.mu.Lock()
	defer c.mu.Unlock()
	if t.Before(c.floor) {
		return c.floor
	}
	c.floor = t
	return t
}
