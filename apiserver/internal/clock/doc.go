// Package clock is the clock of a session: the time of the past as a function of the time of day.
//
// # What it guarantees
//
//   - A Clock is a value. Each change gives a new one, which goes on from the time that the old one had.
//   - The time does not go back, unless Seek says so. If the time of day is set back, the Clock stands still.
//
// # What it rejects, and why
//
// A speed below 0.1 or above 1,000: slower is a pause, and faster is a Seek.
//
// It starts no goroutine and reads no time of its own.
package clock
