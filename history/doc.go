// Package history reads the record: deltas, versions, and the cluster as it was at an instant.
//
// # What it guarantees
//
//   - It only reads, through the public surface and the read views for programs (record_*), so that a member of
//     kuberewind_auditor can use it, also while a recorder writes. Whatever it answers comes from one state of the record: a
//     seq is chosen first, and rows up to a seq never change (I8).
//   - Each version that it gives was compared with the digest that the recorder stored (I6). What does not fold to its digest is a
//     *DamagedError that names the seq; everything else still comes.
//   - An instant that the record cannot answer exactly is answered with notes that say why, or not at all (ErrBeforeRecord).
//     Point says which deltas belong to an instant.
//   - Times bounds when the deltas of a pause happened, by the order of resource versions. An instant within a pause counts by these bounds.
//   - A rebuild with a checkpoint and one without give the same objects. A checkpoint is compared with the digests of its blocks
//     before anything of it is used; its objects are compared with their own when it is made, when a row of the tail is folded onto
//     them, and by Verify.
//   - Memory is bounded: deltas come in batches of a few MiB; folded objects wait compressed, and only those that the reading
//     still needs.
//   - Every query on deltas bounds observed_at, found in the table of days, so that the planner sees one partition or two and
//     not hundreds.
//
// # What it rejects, and why
//
// Open refuses a schema that is older or newer than this program knows, and a record of several clusters if none is named. A
// day whose partition is gone is a *MissingDayError where the answer needs it. A resource version asked of several resources is
// refused unless it is established that one etcd serves them: resource versions of different etcds say nothing about each other.
//
// # Goroutines
//
// Iterators run on the caller's goroutine. Rebuild starts as many as there are processors and has waited for all of them
// when it returns; emit and Damaged are called from them. Checkpointer.Run runs on the goroutine that calls it. The pool's own end with
// Close.
//
// # Knobs
//
// There are none for reading. A Checkpointer has CheckpointOptions.
package history
