// Package sweep has each living object stored once a day, so that earlier days can be dropped (I8).
//
// Once a minute it looks whether the day has all of its objects. It sends those that lack through the queue, as deltas of source
// resync. Objects whose streams are partly on disk come in a later round. A stream that the database rejects holds up no other, but
// no day is complete without it. [Sweeper.Run] belongs to the goroutine that calls it.
package sweep
