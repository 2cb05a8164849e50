// Package migrations makes and changes the schema kuberewind: the tables of the record, and the views that are its public surface.
//
// # What it guarantees
//
//   - A migration is applied whole or not at all. Each file is sent as one multi-statement query, which PostgreSQL runs as one
//     transaction. It replaces the function schema_version(), and every decision here is taken from that function. The table of
//     golang-migrate is not trusted: it is written before and after the file, and says "dirty" after any interruption. So a
//     migration that was killed needs no repair: the next [Up] goes on from what was applied.
//   - Migrators exclude each other by golang-migrate's advisory lock. Each looks at the version again once it holds the lock.
//     Any login of the database can hold that lock. So a schema that is up to date needs no lock: Up only reads the version, and Roles
//     tries again after a collision.
//   - A migration that waits for a lock gives up after five seconds and tries again. It holds up no recorder and no reader
//     for longer. So a migration that needs a table to itself does nothing else that takes long: each attempt would do it anew.
//   - When its context ends, the statement in progress is cancelled on the server before Up or Down returns.
//
// # What it rejects, and why
//
//   - A schema that is newer than this program ([ErrNewer]): it may mean something that this program does not know.
//   - A schema from 1 to 105 ([ErrUnreleased]): development builds made those, and nothing brings them to 110.
//   - A schema of another role, or with something of another role in it ([ErrNotOwner]): what is in it would run as the
//     recorder. A superuser does not even ask a schema of another role for its version.
//   - Down on a record that holds deltas ([ErrFilled]), unless forced: nothing brings them back.
//   - PostgreSQL before 15, which is not tested.
//   - A database whose encoding is not UTF8: it cannot hold Kubernetes' texts.
//
// The URL must lead to the server itself: session locks do not work through a pooler in transaction mode.
//
// # Roles
//
// [Roles] makes four group roles and gives them their rights; roles belong to the whole server, so they are never dropped here.
//
//   - kuberewind_writer may add to the record, move its heads, streams, days and ends of gaps, and say which lives have ended.
//     It cannot change or remove a delta, nor drop a partition (I8). It owns nothing: ensure_day() makes partitions for it, as the owner.
//     It may make and drop checkpoints, which are derived from the rest. It alone may take the leadership of a cluster (internal/election).
//   - kuberewind_auditor may read the views and call the functions that read them, nothing else. Views run as their owner, functions as
//     their caller.
//   - kuberewind_pruner may have the oldest days dropped, by functions that check whether that is safe, and may read the list
//     of dropped days.
//   - kuberewind_counter may read the views that the timeline counts from, and write the table activity. The writer is a member of it.
//
// A recorder calls [BecomeWriter] on each new connection. So it gives up its other rights even if it logs in as the owner.
// That protects against mistakes, and not against a stolen password. Against that, let it log in as a member of kuberewind_writer
// that is neither owner nor superuser, and run the migrations with a URL of their own.
//
// # Goroutines
//
// None outlives a call.
//
// # Files
//
// Numbers begin at 110, one file up and one down for each topic: tables, circumstances, surface, coverage, programs, patch, instants,
// replay, retention, erasure, activity. The first has the tables that the guard of Down reads. Changes of a release get the next
// number, and replace schema_version().
package migrations
