// Package spool keeps records of bytes on disk, in order, until they are released: the overflow of a queue.
//
// # What it guarantees
//
//   - Read returns records whole and in the order in which they were appended, or not at all. It checks each record
//     (CRC-32C) before it returns it. If files are damaged, the records that Read returns are still a prefix of the
//     appended ones.
//   - A record that Append has accepted survives the end of the process, also by kill -9. A power cut may take records
//     that are not synced yet. A full segment is synced. The first append that comes SyncEvery after the last sync also
//     syncs the current segment. So the owner must be able to get the records after the last surviving one again.
//   - Open cuts a torn end. A torn end is damage in the last segment that no whole record follows: the file ends there,
//     or its pages are zeros or something else.
//   - If whole records follow the damage, a segment is missing, or a segment is of another spool, the rest may not be the
//     continuation. Open moves the rest to a folder of its own, and never deletes it. If the beginning of a damaged
//     segment is whole, Open copies the file there and keeps the beginning.
//   - A segment whose header cannot be read counts as damaged. If nothing follows it and it holds no whole record, Open
//     removes it.
//   - The bound holds: Append refuses a record, with ErrFull, if the files would then be larger than MaxBytes.
//   - A failed Append adds nothing: it cuts the half-written record, and the next Append tries again.
//   - The owner numbers the records, without a break. An empty spool may go on at any later index. The spool does not
//     note on disk how far it was released: the owner keeps the index elsewhere, and releases again after Open.
//   - A folder has one process at a time, or several that only read it (flock).
//
// # What it rejects, and why
//
// Open refuses:
//
//   - a folder that another process holds (ErrLocked);
//   - if the caller writes, a folder that other processes read (ErrRead);
//   - a folder that cannot be written, unless Options.ReadOnly is set;
//   - a segment file whose name is no index;
//   - on a read-only disk, a spool of which a part has to be set aside.
//
// If an appended record cannot be read back, Read returns an error. The error is final: the next readable record does
// not follow the last one.
//
// # Files
//
// The folder has the file lock, and one file for each segment. The name of the file is the index of the segment's first
// record. A segment begins with a header: magic, that index, the index at which the spool began when it was last empty,
// the owner's header, and a checksum of these. The header is synced before the first record.
//
// Then come the records: length, CRC-32C, and the record, compressed with S2. Length and checksum are 4 bytes each,
// little-endian. The checksum covers the length, too.
//
// # Goroutines
//
// The package starts none. The owner calls one method at a time.
//
// # Knobs
//
//   - Options.MaxBytes: the bound on the files.
//   - Options.SegmentBytes, 64 MiB, or an eighth of MaxBytes if that is less: the unit in which records are deleted or set aside.
//   - Options.SyncEvery, one second.
package spool
