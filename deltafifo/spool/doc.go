// Package spool keeps records of bytes on disk, in order, until they are released: the overflow of a queue.
//
// # What it guarantees
//
//   - Records come back whole and in the order in which they were appended, or not at all: each is checked (CRC-32C) before it
//     is returned. Whatever happens to the files, what is read is a prefix of what was appended.
//   - What Append has accepted survives the end of the process, also by kill -9. A power cut may take what is not synced yet: a
//     segment is synced when it is full, and the one being written by the first append that comes SyncEvery after the last sync.
//     So the owner must be able to get again what follows the last record that is left.
//   - A torn end is cut when the spool is opened: damage in the last segment that no whole record follows, be it that the file ends there, or that
//     pages of it are zeros or something else. Where whole records follow the damage, or a segment is missing,
//     what follows cannot be trusted to follow: it is set aside, that is moved to a folder of its own and never deleted.
//   - The bound holds: Append refuses, with ErrFull, a record with which the files would be larger than MaxBytes.
//   - A failed Append leaves nothing behind: the half-written record is cut, and the next Append tries again.
//   - The cursor, which says up to where the records are released under which mark, is written in place in a file of fixed size that
//     is made with the spool, alternating between two slots and synced: a full disk does not stop it, and a write that is cut leaves the one before.
//   - One process has a folder at a time, or several that only read it (flock).
//
// # What it rejects, and why
//
// Open refuses a folder that another process holds (ErrLocked) or, to a writer, that others read (ErrRead), one that cannot be written unless it is
// opened to be read only, and files of another format. What would have to be set aside cannot be on a read-only disk: that is an error.
// A record that was appended and cannot be read back is an error of Read, which is final: what comes after it must not be taken
// for what follows.
//
// # Files
//
// lock, cursor, and one file for each segment, named by the index of its first record. A segment begins with a header: magic, the index, the
// owner's header, and a checksum of these. Then come records: length and CRC-32C (little-endian, 4 bytes each; the checksum covers the length,
// too), then the record, compressed with S2.
//
// # Goroutines
//
// The package starts none. The owner calls one method at a time.
//
// # Knobs
//
// Options.MaxBytes, SegmentBytes (64 MiB, or an eighth of MaxBytes: what is set aside or deleted at once) and SyncEvery (one second).
package spool
