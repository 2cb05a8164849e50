// Package clock gives the times of observation.
//
// They never decrease, and a step of the wall clock does not reorder the record. The record's time follows the wall clock only if
// the database's clock agrees.
//
// A [Clock] can be used by many goroutines. A [Keeper] belongs to the goroutine of [Keeper.Run], which looks every 10 s for a
// step of more than a minute.
package clock
