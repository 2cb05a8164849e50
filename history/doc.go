// Package history reads the record: deltas, versions, and the cluster as it was at an instant.
//
// # What it guarantees
//
//   - The package only reads, through the public surface and the read views for programs (record_*). So a member of
//     kuberewind_auditor can use it, also while a recorder writes.
//   - Each answer comes from one state of the record: it chooses a seq first, and rows up to a seq never change (I8).
//   - The package compares each version with the digest that the recorder stored (I6). If a version does not fold to its digest,
//     the reader returns a *DamagedError that names the seq, and continues with the other versions.
//   - If the record cannot answer an instant exactly, notes say why. If it has no answer, the error is ErrBeforeRecord. Point
//     says which deltas belong to an instant.
//   - Times bounds when the deltas of a pause happened, by the order of resource versions. An instant within a pause counts
//     by these bounds.
//   - A rebuild with a checkpoint and a rebuild without one return the same objects. The reader compares a checkpoint with the
//     digests of its blocks before it uses it. Objects are compared with their own digests three times: the maker
//     does it, the reader when it folds a later row onto them, and package verify.
//   - Memory is bounded. Deltas come in batches of a few MiB. The reader keeps folded objects compressed, and drops them when
//     it no longer needs them.
//   - Queries on deltas bound observed_at, most by the table of days. So the planner reads few partitions instead of hundreds.
//     Adoptions has no upper bound, and uses an index.
//
// # How it is divided
//
// A Record opens and closes a cluster's record, finds instants, rebuilds states, and reads deltas and lives. Seven smaller types
// answer the other questions:
//
//   - Completeness: which parts of the record are complete, what interrupted it, and what was dropped or erased.
//   - Commits: the chain of commits, and whether the recorder still commits.
//   - Days: the partitions of the deltas.
//   - Timeline: deltas found by time, without their objects.
//   - Lookup: single versions of known lives.
//   - Kinship: which other objects a life refers to.
//   - Server: the documents in which the API server describes itself.
//
// All of them read through a view, which reads the basic tables of one cluster, either through the pool or within one
// transaction. Point, Times and ListWatch build on these types.
//
// # What it rejects, and why
//
// Open refuses a schema that is older or newer than this program knows. It refuses a record of several clusters if the caller
// names none. If an answer needs a day whose partition is gone, the error is a *MissingDayError. Resolve refuses one resource
// version for several resources, unless one etcd is known to serve them all: resource versions of different etcds cannot be
// compared.
//
// # Goroutines
//
// Iterators run on the caller's goroutine. Rebuild starts one goroutine for each processor, and one that reads the checkpoint.
// These goroutines call emit and Damaged. Queries for first and last versions start goroutines, too. Each call waits for its own.
// Each watch of a ListWatch has one goroutine, and Stop waits for it. The pool's goroutines end with Close.
//
// # Knobs
//
// Options, RebuildOptions, ListWatchOptions and PlayerOptions. No size and no interval can be set.
package history
