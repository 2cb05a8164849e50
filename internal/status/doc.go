// Package status reads what `recorder status` shows: what is recorded, how far, by which recorder, and what is wrong.
//
// It also reads the head of the chain of commits, for `recorder head`. It reads the database and the folder of the spool. It starts no
// goroutine and has no knobs.
package status
