// Package postgres writes deltas into PostgreSQL, each once and in order.
//
// # What it guarantees
//
//   - A commit is one transaction. Its first statement moves the cluster's head by compare-and-swap on epoch, seq and
//     batch. Lives, rows, the batch, positions and gaps follow in it (I1). A writer that lost its epoch writes nothing and gets
//     ErrFenced.
//   - The sink skips items that are already recorded (I7). A watch may resume from any stored position, and may repeat
//     events.
//   - An object is its UID (I5): a new UID under a known name ends the old life before it begins its own.
//   - Before the sink stores a patch, it applies the patch to the previous version and compares the result with the
//     version served (I6). If they differ, it stores the whole object instead.
//   - The first row of a life in a UTC day is a keyframe, so that each day's partition can be read by itself (I8).
//   - A Sink never updates or deletes rows of deltas. An Erasing, which needs the owner's rights, rewrites some.
//   - Each batch has a digest, chained to the digest of the previous batch. Package verify computes it again from the
//     tables.
//   - A stream can resume from its position only if no part of an unfinished list is on record (I3).
//   - Nothing is dropped. Commit retries while the database is away, full, read-only or busy, until its context ends.
//     After an unknown outcome it reads the head to find out whether the transaction was committed.
//
// # What it rejects, and why
//
// Open refuses:
//
//   - a schema that is missing, older or newer than this package knows;
//   - a cluster name that another cluster has;
//   - a cluster whose Secrets were hidden with another key (I9).
//
// Encode refuses items that make no sense, such as a delta of an unknown type, or one without an object that is not
// Deleted. After that the sink cannot be used, because the seqs that Encode gave will not be committed.
//
// # Goroutines
//
// Encode compares versions on up to eight goroutines, its own included, and waits for them: at most one for each
// processor, and one for each 16 lives. One of them compares all versions of a life, in order. The package starts no
// others, except in its connection pool. Close ends these if Open made the pool.
//
// One goroutine calls Encode, and one calls Commit, in the order of the batches. They may be two goroutines, one batch
// apart. Any goroutine may use Stream, RecordServer and the views of known objects.
//
// # What it keeps in memory
//
// For each living object the sink keeps UID, resource version, digest, and the last version, compressed. That takes
// about 240 bytes and the compressed text. Patches are made against it. The sink loads it when it opens a stream, by
// folding the record.
//
// # Knobs
//
//   - Config.Patience, one minute: the time after which Commit cancels an attempt and retries.
//   - A keyframe is written 64 versions after the previous keyframe of an object.
//   - Partitions are made three days ahead, and when one is missing.
package postgres
