// Package retention drops the oldest days of a record.
//
// A day goes only whole, only from the oldest end, and only when the days after it can be read without it (I8). The database
// decides that, in kuberewind.prune_day, from the recorded sweep and from the rows themselves. Every prune is on record.
//
// The package rejects nothing that the database would allow. The login needs no more than membership in kuberewind_pruner.
//
// It has no goroutines. Its knobs are Options. A day that readers hold is tried again up to Attempts times. Each attempt waits
// a quarter of a second at most, because later sessions, the recorder's too, wait behind it.
package retention
