// Package spooling decides whose spool lies in a folder, from which entry a recorder goes on there, and what the entries leave of each
// stream.
//
// The header of a spool holds its identity, and each commit writes that identity and the next offset. [Start] compares the two (I7).
// The recorder at its start and "recorder erase" decide by it alike. [Take] waits up to a minute for processes that only read.
//
// A recorder has a [Folder]. It opens the spool there, resumes it, and gives it to the queue:
//
//   - Resume releases what is on record, reads the rest once, and says what is left of each stream: a [Leftover].
//   - It sets a spool aside that cannot be used, and never deletes one.
//   - Without a usable disk there is no spool: a full queue then holds the watches back.
//
// A [Codec] makes the records. They hold only the redacted text of objects (I9), and come back under the present rules.
//
// [SpillOverdue] needs a goroutine of the caller. Nothing else here starts or needs one, and a Folder has no lock: one goroutine opens
// and resumes it before the queue is made.
package spooling
