// Package retention drops the oldest days of a record.
//
// The package drops a day only as a whole, only the oldest one, and only if later days can be read without it (I8).
// The database decides that, in kuberewind.prune_day, from the recorded sweep and from the rows. The record lists
// every prune.
//
// The package rejects nothing that the database would allow. Membership in kuberewind_pruner is enough for the login.
//
// The package has no goroutines. Its knobs are Options. If readers hold a day, the package retries up to Attempts
// times (60), a Pause (one second) apart. Each attempt waits a quarter of a second at most, because later sessions
// wait behind it, including the recorder's.
package retention
