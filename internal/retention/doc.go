// Package retention drops the oldest days of a record.
//
// It guarantees that a day goes only whole, only from the oldest end, and only when the days after it can be read without it (I8): the
// database decides that, in kuberewind.prune_day, from the sweep that is on record and from the rows themselves. What went is on record.
//
// It rejects nothing that the database would allow. The login needs no more than membership in kuberewind_pruner.
//
// Goroutines: none. Knobs: Options; a day that readers hold is tried again up to Attempts times, and each attempt waits a quarter of a
// second at most, since whoever comes after it, the recorder too, waits with it.
package retention
