// Package notices tells about a recorder by Events in its cluster: gaps that open and close, and a database that is behind.
//
// Gaps are gathered for five seconds: what happened to a hundred streams at once is one Event for each cause. An Event comes back
// as a delta, and no delta is the cause of a notice. [Notices.Follow] belongs to the goroutine that calls it.
package notices
