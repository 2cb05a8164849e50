// Package sweep stores each living object once a day, so that earlier days can be dropped (I8).
//
// Once a minute it checks whether the day has all living objects. It sends the missing ones through the queue, as deltas of source resync. If
// a stream is partly on disk, its objects follow in a later round. If the database rejects a stream, the other streams go on, but no day
// is complete without it. [Sweeper.Run] belongs to the goroutine that calls it.
package sweep
