// Package spool keeps records of bytes on disk, in order, until they are released: the overflow of a queue.
//
// # What it guarantees
//
//   - Records come back whole and in the order in which they were appended, or not at all. Each is checked (CRC-32C) before
//     it is returned. Whatever happens to the files, what is read is a prefix of what was appended.
//   - What Append has accepted survives the end of the process, also by kill -9. A power cut may take what is not synced
//     yet. A full segment is synced. The segment being written is synced by the first append that comes SyncEvery after the
//     last sync. So the owner must be able to get again what follows the last record that is left.
//   - A torn end is cut when the spool is opened. It is damage in the last segment that no whole record follows: the file
//     ends there, or its pages are zeros or something else.
//   - If whole records follow the damage, or a segment is missing, the rest may not be the continuation. It is set aside:
//     moved to a folder of its own, and never deleted.
//   - The bound holds: Append refuses, with ErrFull, a record with which the files would be larger than MaxBytes.
//   - A failed Append leaves nothing behind: the half-written record is cut, and the next Append tries again.
//   - The owner numbers the records, without a break. An empty spool may go on at any later index. What was released is not
//     noted on disk: the owner keeps the index elsewhere, and releases again after Open.
//   - One process has a folder at a time, or several that only read it (flock).
//
// # What it rejects, and why
//
// Open refuses:
//
//   - a folder that another process holds (ErrLocked);
//   - to a writer, a folder that others read (ErrRead);
//   - a folder that cannot be written, unless it is opened to be read only;
//   - files of another format;
//   - on a read-only disk, a spool of which a part has to be set aside.
//
// Read returns an error for a record that was appended and cannot be read back. The error is final: what comes after the
// record must not be taken for what follows.
//
// # Files
//
// The folder has the file lock, and one file for each segment, named by the index of its first record. A segment begins with a
// header: magic, that index, the index with which the spool began when it was last empty, the owner's header, and a checksum of
// these. The header is synced before the first record. Then come records: length, CRC-32C, and the record, compressed with S2.
// Length and checksum are 4 bytes each, little-endian; the checksum covers the length, too.
//
// # Goroutines
//
// The package starts none. The owner calls one method at a time.
//
// # Knobs
//
//   - Options.MaxBytes: the bound on the files.
//   - Options.SegmentBytes, 64 MiB or an eighth of MaxBytes: what is set aside or deleted at once.
//   - Options.SyncEvery, one second.
package spool
