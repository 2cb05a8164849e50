// Package times compares two times. It is a leaf, does no I/O and keeps no state.
package times

import "time"

// Later gives the later of two times. The zero time is before all others.
func Later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// Earlier gives the earlier of two times.
func Earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
