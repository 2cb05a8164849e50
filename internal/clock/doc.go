// Package clock provides the times of observation.
//
// These times never decrease, and a step of the wall clock does not reorder the record. The record's time follows the wall clock only if the
// database's clock agrees.
//
// Many goroutines can use a [Clock]. A [Keeper] belongs to the goroutine of [Keeper.Run], which checks every 10 s for a step of more than a
// minute.
package clock
