// Package clock is the clock of a session: it computes a time of the past from the time of day.
//
// # What it guarantees
//
//   - A Clock is a value. Each change returns a new Clock, which continues from the time of the old one.
//   - Only Seek moves the time back, if the caller's time of day does not go back. At a time of day before the last change, the Clock
//     shows the time of that change.
//
// # What it rejects, and why
//
// A speed below 0.1 or above 1,000: use Pause or Seek instead.
//
// It starts no goroutine. The caller passes the time of day.
package clock
