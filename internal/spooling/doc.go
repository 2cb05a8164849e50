// Package spooling decides whose spool lies in a folder, and from which entry a recorder goes on there. It also
// collects the state of each stream at the end of the spool.
//
// The header of a spool holds its identity. Each commit writes that identity and the next offset. [FirstUnrecorded] compares the
// two (I7). A starting recorder and "recorder erase" both use it. [OpenExclusive] waits up to a minute for processes that only
// read.
//
// A recorder has a [Folder]. It opens the spool there, resumes it, and gives it to the queue:
//
//   - Resume releases the recorded entries, reads the rest once, and returns the state of each stream there: a
//     [Leftover].
//   - It sets an unusable spool aside, and never deletes one.
//   - Without a usable disk there is no spool: a full queue then blocks the watches.
//
// A [Codec] makes the records. They hold only the redacted text of objects (I9). When an object is read back, the
// present rules apply.
//
// [SpillOverdue] needs a goroutine of the caller. Nothing else here starts or needs a goroutine. A Folder has no lock:
// one goroutine opens and resumes it before the queue is made.
package spooling
