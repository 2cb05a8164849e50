// Package times compares two times. It imports no other package of this module, does no I/O and keeps no state.
package times

import "time"

// Later returns the later of two times. The zero time is before all others.
func Later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// Earlier returns the earlier of two times.
func Earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
