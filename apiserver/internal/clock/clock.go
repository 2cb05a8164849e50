package clock

import (
	"fmt"
	"math"
	"time"
)

// The speeds that a Clock can have.
const (
	Slowest = 0.1
	Fastest = 1000
)

// A Clock shows a time. While it plays, the time moves.
type Clock struct {
	at      time.Time // the shown time …
	since   time.Time // … at this time of day
	speed   float64
	playing bool
}

// New makes a Clock that is paused at a time. Its speed is 1.
func New(at time.Time) Clock { return Clock{at: at, speed: 1} }

// Playing reports whether the Clock moves.
func (c Clock) Playing() bool { return c.playing }

// Speed returns how many seconds of the past pass in one second while the Clock plays.
func (c Clock) Speed() float64 { return c.speed }

// Time returns the time that the Clock shows at a time of day.
func (c Clock) Time(now time.Time) time.Time {
	passed := now.Sub(c.since)
	if !c.playing || passed <= 0 {
		return c.at
	}
	moved := float64(passed) * c.speed
	if moved >= math.MaxInt64 {
		return c.at.Add(math.MaxInt64)
	}
	return c.at.Add(time.Duration(moved))
}

// Seek sets the time. A Clock that plays continues to play.
func (c Clock) Seek(now, at time.Time) Clock {
	c.at, c.since = at, now
	return c
}

// Play starts the Clock.
func (c Clock) Play(now time.Time) Clock {
	c = c.Seek(now, c.Time(now))
	c.playing = true
	return c
}

// Pause stops the Clock at its current time.
func (c Clock) Pause(now time.Time) Clock {
	c = c.Seek(now, c.Time(now))
	c.playing = false
	return c
}

// WithSpeed changes the speed from now on.
func (c Clock) WithSpeed(now time.Time, speed float64) (Clock, error) {
	if !(speed >= Slowest && speed <= Fastest) { // also rejects NaN
		return c, fmt.Errorf("speed %v is not possible: use a number from %v to %v; to stop the clock, pause it", speed, Slowest, Fastest)
	}
	c = c.Seek(now, c.Time(now))
	c.speed = speed
	return c, nil
}
