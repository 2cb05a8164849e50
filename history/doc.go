// Package history reads the record: deltas, versions, and the cluster as it was at an instant.
//
// # What it guarantees
//
//   - It only reads, through the public surface and the read views for programs (record_*). So a member of kuberewind_auditor
//     can use it, also while a recorder writes.
//   - Each answer comes from one state of the record: it chooses a seq first, and rows up to a seq never change (I8).
//   - It compares each version with the digest that the recorder stored (I6). A version that does not fold to its digest is a
//     *DamagedError that names the seq; everything else still comes.
//   - If the record cannot answer an instant exactly, notes say why, or there is no answer (ErrBeforeRecord). Point says
//     which deltas belong to an instant.
//   - Times bounds when the deltas of a pause happened, by the order of resource versions. An instant within a pause counts
//     by these bounds.
//   - A rebuild with a checkpoint and one without give the same objects. A checkpoint is compared with the digests of its
//     blocks before it is used. Its objects are compared with their own digests when it is made, when a later row is folded
//     onto them, and by package verify.
//   - Memory is bounded. Deltas come in batches of a few MiB. Folded objects wait compressed, and only those that are still
//     needed.
//   - Every query on deltas bounds observed_at, found in the table of days, so that the planner sees one or two partitions
//     and not hundreds.
//
// # How it is divided
//
// A Record opens and closes a cluster's record, finds instants, rebuilds states, and reads deltas and lives. Seven smaller types
// hold the other questions:
//
//   - Completeness: where the record is complete, and what interrupted it or was taken from it.
//   - Commits: the chain of commits, and whether it goes on.
//   - Days: the partitions of the deltas.
//   - Timeline: deltas found by time, without their objects.
//   - Lookup: single versions of known lives.
//   - Kinship: which other objects a life refers to.
//   - Server: what the API server said of itself.
//
// All read through a view: the tables that answers begin with, through the pool or within one transaction. Point, Times and
// ListWatch build on these.
//
// # What it rejects, and why
//
// Open refuses a schema that is older or newer than this program knows, and a record of several clusters if none is named. A
// day whose partition is gone is a *MissingDayError if the answer needs it. For several resources, a resource version is
// refused unless one etcd is known to serve them all. Resource versions of different etcds say nothing about each other.
//
// # Goroutines
//
// Iterators run on the caller's goroutine. Rebuild starts one for each processor, and has waited for all of them when it
// returns; they call emit and Damaged. The pool's goroutines end with Close.
//
// # Knobs
//
// There are none.
package history
